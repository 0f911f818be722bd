import { runReplay } from './replay/replay-command.ts';

// The command of the package that build-conformance.ts builds. It starts no gateway.
await runReplay('order-gateway-conformance');
