import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';

// Runs in a separate thread. The decoder is WebAssembly, so that its bugs can't reach the gateway's memory. It traps on an
// invalid image and can't be used again (docs/decisions/066-decode-one-logo-at-a-time.md).

/** A tenth of the CPU time of a thread that serves calls, where both need the same core. */
const niceness = 10;

try {
  // Only on Linux is the caller of setpriority(2) a thread. Elsewhere it would be the gateway.
  if (process.platform === 'linux') setPriority(niceness);
} catch {
  // A sandbox may forbid it.
}

// Compiled at the lower priority too.
const { default: photon } = await import('@silvia-odwyer/photon-node');
const image = photon.PhotonImage.new_from_byteslice(workerData);
parentPort?.postMessage({ width: image.get_width(), height: image.get_height() });
