import { parentPort, workerData } from 'node:worker_threads';
import photon from '@silvia-odwyer/photon-node';

// Runs in a separate thread. The decoder is WebAssembly, so that its bugs can't reach the gateway's memory. It traps on an
// invalid image and can't be used again (docs/decisions/061-check-logos.md).

const image = photon.PhotonImage.new_from_byteslice(workerData);
parentPort?.postMessage({ width: image.get_width(), height: image.get_height() });
