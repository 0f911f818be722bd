import { constants, getPriority, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';

// Runs in a separate thread. The decoder is WebAssembly, so that its bugs can't reach the gateway's memory. It traps on
// an invalid image and can't be used again (docs/decisions/066-decode-one-logo-at-a-time.md).

/**
 * Added to the niceness of the gateway, this gives the thread a tenth of the CPU time of a thread that serves calls if
 * both need the same core.
 */
const addedNiceness = 10;

try {
  // On Linux, setpriority(2) applies to the calling thread. Elsewhere, it would apply to the whole gateway.
  if (process.platform === 'linux')
    setPriority(Math.min(getPriority() + addedNiceness, constants.priority.PRIORITY_LOW));
} catch {
  // A sandbox may forbid changing the priority.
}

// Imported after the change of priority, so that the decoder is also compiled at the lower priority.
const { default: photon } = await import('@silvia-odwyer/photon-node');
const image = photon.PhotonImage.new_from_byteslice(workerData);
parentPort?.postMessage({ width: image.get_width(), height: image.get_height() });
