import { startFixtureGateway } from './gateway/own-gateway.ts';
import { runReplay } from './replay/replay-command.ts';

await runReplay('replay', startFixtureGateway);
