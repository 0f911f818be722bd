import { getHeapStatistics } from 'node:v8';

// A module that the process of a contender loads first. It answers each message of the bench with the number of bytes
// that the process has allocated on V8's heap.

process.on('message', () => process.send?.(getHeapStatistics().total_allocated_bytes));
// The channel must not keep the process running.
process.channel?.unref();
