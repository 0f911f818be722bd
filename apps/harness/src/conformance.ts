import { runReplay } from './replay/replay-command.ts';

// build-conformance.ts builds the package @order-gateway/conformance from this command. Unlike `pnpm replay`, the
// command starts no gateway.
await runReplay('order-gateway-conformance');
