import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { mustSkip } from '../../../../tools/skip-if-missing.ts';
import { callHeaders, createOrderPath, orderData } from '../helpers/grpc/grpc-call.ts';
import { blockedStore, runGrpcServer } from '../helpers/grpc/grpc-servers.ts';
import { missingGrpcio, python } from '../helpers/grpc/grpcio.ts';

/** Makes a call that waits and further calls on the same connection, and prints the status of each. */
const program = `
import grpc, json, sys

port, path, credentials, *messages = sys.argv[1:]
channel = grpc.insecure_channel('127.0.0.1:' + port)
fields = tuple(json.loads(credentials).items())

def start(path, message, more=()):
  return channel.unary_unary(path).future(bytes.fromhex(message), metadata=fields + tuple(more), timeout=30)

def show(call):
  details = dict(call.trailing_metadata()).get('grpc-status-details-bin', b'').decode('latin1')
  print(json.dumps([call.code().name, details]), flush=True)

waiting = start(path, messages[0])
sys.stdin.readline()
service = path.rpartition('/')[0]
show(start(service + '/Nothing', messages[1]))
show(start('/gateway.v1.Nothing/Nothing', messages[1]))
show(start(path, messages[1], [('x', 'y' * 17_000)]))
show(start(path, messages[1], [('x-%d' % i, 'y') for i in range(101)]))
sys.stdin.readline()
show(waiting)
`;

test.skipIf(mustSkip('the errors that grpcio receives', missingGrpcio()))(
  'grpcio gets UNIMPLEMENTED for unknown methods and details for metadata that is too large, while another call succeeds',
  async () => {
    const { entered, release, store } = blockedStore();
    const server = await runGrpcServer({ store });
    const { 'content-type': _protocol, ...credentials } = callHeaders;
    const orders = ['waits', 'is rejected'].map((id) => Buffer.from(orderData(id)).toString('hex'));
    const args = ['-c', program, String(server.port), createOrderPath, JSON.stringify(credentials), ...orders];
    const client = spawn(python, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    onTestFinished(() => void client.kill());
    const results: unknown[] = [];
    createInterface({ input: client.stdout }).on('line', (line) => results.push(JSON.parse(line)));
    await entered;
    client.stdin.write('\n');
    const tooLarge = ['RESOURCE_EXHAUSTED', expect.stringContaining('_too_large')];
    const rejected = [['UNIMPLEMENTED', ''], ['UNIMPLEMENTED', ''], tooLarge, tooLarge];
    await expect.poll(() => results).toEqual(rejected);
    release();
    client.stdin.end('\n');
    await expect.poll(() => results).toEqual([...rejected, ['OK', '']]);
  },
);
