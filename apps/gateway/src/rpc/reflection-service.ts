import { type DescFile, type DescService, toBinary } from '@bufbuild/protobuf';
import { nestedTypes } from '@bufbuild/protobuf/reflect';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code, type ConnectRouter, type ServiceImpl } from '@connectrpc/connect';
import { file_google_rpc_error_details } from '@order-gateway/contract/google/rpc/error_details_pb';
import {
  ServerReflection,
  type ServerReflectionRequest,
} from '@order-gateway/contract/grpc/reflection/v1/reflection_pb';
import { ServerReflection as ServerReflectionAlpha } from '@order-gateway/contract/grpc/reflection/v1alpha/reflection_pb';

/**
 * Adds gRPC's server reflection (github.com/grpc/grpc, doc/server-reflection.md), which describes the services and
 * itself. It is served in the versions v1 and v1alpha, because a tool may support only one of them. Their messages are
 * the same.
 */
export function addReflectionServices(router: ConnectRouter, services: readonly DescService[]): void {
  const reflected = [...services, ServerReflection, ServerReflectionAlpha];
  // The error details are added separately, because they are not fields of any message.
  const files = new Set(
    [...reflected.map(({ file }) => file), file_google_rpc_error_details].flatMap(withDependencies),
  );
  const fileOf = new Map<string, DescFile>();
  /** The numbers of the extensions of each message. */
  const extensionsOf = new Map<string, number[]>();
  for (const file of files) {
    fileOf.set(file.proto.name, file);
    for (const type of nestedTypes(file)) {
      fileOf.set(type.typeName, file);
      if (type.kind === 'message') extensionsOf.set(type.typeName, []);
      if (type.kind === 'service') for (const { name } of type.methods) fileOf.set(`${type.typeName}.${name}`, file);
      if (type.kind !== 'extension') continue;
      fileOf.set(extensionKey(type.extendee.typeName, type.number), file);
      extensionsOf.get(type.extendee.typeName)?.push(type.number);
    }
  }

  const fileResponse = (name: string) => {
    const file = fileOf.get(name);
    if (file === undefined) return notFound;
    const fileDescriptorProto = withDependencies(file).map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
    return { case: 'fileDescriptorResponse', value: { fileDescriptorProto } } as const;
  };
  const responseTo = ({ messageRequest: { case: kind, value } }: ServerReflectionRequest) => {
    switch (kind) {
      case 'fileByFilename':
      case 'fileContainingSymbol':
        return fileResponse(value);
      case 'fileContainingExtension':
        return fileResponse(extensionKey(value.containingType, value.extensionNumber));
      case 'allExtensionNumbersOfType': {
        const extensionNumber = extensionsOf.get(value);
        if (extensionNumber === undefined) return notFound;
        return { case: 'allExtensionNumbersResponse', value: { baseTypeName: value, extensionNumber } } as const;
      }
      case 'listServices': {
        const service = reflected.map(({ typeName }) => ({ name: typeName }));
        return { case: 'listServicesResponse', value: { service } } as const;
      }
      default:
        return notFound;
    }
  };
  const implementation = {
    async *serverReflectionInfo(requests: AsyncIterable<ServerReflectionRequest>) {
      for await (const request of requests) {
        yield { validHost: request.host, originalRequest: request, messageResponse: responseTo(request) };
      }
    },
  } satisfies ServiceImpl<typeof ServerReflection>;
  router.service(ServerReflection, implementation);
  router.service(ServerReflectionAlpha, implementation as Partial<ServiceImpl<typeof ServerReflectionAlpha>>);
}

const extensionKey = (typeName: string, number: number) => `${typeName} ${number}`;

const notFound = {
  case: 'errorResponse',
  value: { errorCode: Code.NotFound, errorMessage: 'not found' },
} as const;

/** Returns a file after all files that it imports. */
function withDependencies(file: DescFile): DescFile[] {
  return [...new Set([...file.dependencies.flatMap(withDependencies), file])];
}
