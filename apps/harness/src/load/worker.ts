import { fixturesFolder, loadFixtures } from '@gateway/fixtures/load-fixtures';
import { messageOf } from '../message-of.ts';
import { arrivalsOf } from './arrivals.ts';
import { runClosedLoop, runOpenLoop } from './executors.ts';
import { openJournal } from './journal.ts';
import { createCallMaker } from './make-calls.ts';
import { createRecorder } from './recorder.ts';
import { rehearse } from './rehearsal.ts';
import { startClock } from './run-clock.ts';
import { openSenders } from './senders/open-senders.ts';
import type { FromWorker, ToWorker, WorkerTask } from './worker-messages.ts';

// A process of its own for sending, so that neither the progress line nor the report takes time from it.

const stopped = new AbortController();
const { promise: begun, resolve: begin } = Promise.withResolvers<number>();

// Ctrl-C reaches all processes of the terminal; the one that started this one says when to stop.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
process.once('disconnect', () => process.exit(1));
// Such as a journal that found no room on the disk. The one that started this process ends the run.
process.on('uncaughtException', (error) => tell({ kind: 'failed', reason: messageOf(error) }));
process.on('message', (message: ToWorker) => {
  switch (message.kind) {
    case 'task':
      run(message).then(
        () => tell({ kind: 'ended' }),
        (error: unknown) => tell({ kind: 'failed', reason: messageOf(error) }),
      );
      return;
    case 'begin':
      begin(message.startAtMs);
      return;
    case 'stop':
      stopped.abort();
  }
});

async function run(task: WorkerTask): Promise<void> {
  const { settings, credentials, place } = task;
  const set = await loadFixtures(fixturesFolder);
  const makeCall = createCallMaker({ settings, set, credentials });
  await rehearse(makeCall, stopped.signal);
  const journal = task.journalFile === undefined ? undefined : openJournal(task.journalFile);
  const recorder = createRecorder(journal);
  const sender = openSenders(task, settings.connections);
  tell({ kind: 'ready' });
  const clock = startClock(await begun);
  const arrivals = arrivalsOf(settings.phases);
  let second = 0;
  const ticking = setInterval(() => {
    const now = Math.floor(clock.now() / 1_000);
    // A part goes to the second that has just ended; after a pause of this process that may be more than one.
    if (now <= second) return;
    tell({ kind: 'second', part: recorder.closeSecond(now - 1) });
    second = now;
  }, tickMs);
  const execution = { sender, recorder, clock, signal: stopped.signal, makeCall, first: place, step: settings.workers };
  if (settings.mode === 'open') await runOpenLoop(execution, arrivals, settings.underWayMax);
  else await runClosedLoop(execution, Math.ceil(settings.connections / settings.workers), arrivals.seconds);
  clearInterval(ticking);
  recorder.giveUp();
  tell({ kind: 'second', part: recorder.closeSecond(Math.max(0, Math.floor(clock.now() / 1_000))) });
  sender.close();
  journal?.close();
}

/** How soon after its end a second is told. */
const tickMs = 20;

function tell(message: FromWorker): void {
  process.send?.(message);
}
