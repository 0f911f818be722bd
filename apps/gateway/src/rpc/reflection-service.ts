import { createRegistry, type DescFile, type DescService, toBinary } from '@bufbuild/protobuf';
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
  const files = [...reflected.map(({ file }) => file), file_google_rpc_error_details].flatMap(withDependencies);
  const registry = createRegistry(...files);
  const fileOfMethod = new Map(
    reflected.flatMap(({ methods }) => methods).map(({ parent, name }) => [`${parent.typeName}.${name}`, parent.file]),
  );
  const fileOfExtension = (extendeeName: string, number: number) => {
    const extendee = registry.getMessage(extendeeName);
    return extendee && registry.getExtensionFor(extendee, number)?.file;
  };

  const fileResponse = (file: DescFile | undefined) => {
    if (file === undefined) return notFound;
    const fileDescriptorProto = withDependencies(file).map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
    return { case: 'fileDescriptorResponse', value: { fileDescriptorProto } } as const;
  };
  const responseTo = ({ messageRequest: { case: kind, value } }: ServerReflectionRequest) => {
    switch (kind) {
      case 'fileByFilename':
        return fileResponse(files.find(({ proto }) => proto.name === value));
      case 'fileContainingSymbol':
        return fileResponse(registry.get(value)?.file ?? fileOfMethod.get(value));
      case 'fileContainingExtension':
        return fileResponse(fileOfExtension(value.containingType, value.extensionNumber));
      case 'allExtensionNumbersOfType': {
        if (registry.getMessage(value) === undefined) return notFound;
        const extensionNumber = Array.from(registry).flatMap((type) =>
          type.kind === 'extension' && type.extendee.typeName === value ? type.number : [],
        );
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

const notFound = {
  case: 'errorResponse',
  value: { errorCode: Code.NotFound, errorMessage: 'not found' },
} as const;

/** Returns a file and all files that it imports, directly or not. Each file follows those that it imports. */
function withDependencies(file: DescFile): DescFile[] {
  return [...new Set([...file.dependencies.flatMap(withDependencies), file])];
}
