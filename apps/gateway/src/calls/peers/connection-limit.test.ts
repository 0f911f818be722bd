import { EventEmitter } from 'node:events';
import type { Server } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { createConnectionLimit, trackSockets } from './connection-limit.ts';

function setUp(connectionsMax: number) {
  const closed: string[] = [];
  const limit = createConnectionLimit<string>(connectionsMax, (connection) => closed.push(connection));
  const open = (...names: string[]) => {
    for (const name of names) limit.opened(name);
  };
  return { limit, open, closed };
}

test('a full port closes the least recently used connection', () => {
  const { limit, open, closed } = setUp(3);
  open('a1', 'a2', 'a3');
  limit.use('a1')();
  open('a4', 'a5');
  expect(closed).toEqual(['a2', 'a3']);
  open('a6');
  expect(closed).toEqual(['a2', 'a3', 'a1']);
});

test('a connection in use is not closed, and counts as idle from the end of its last call', () => {
  const { limit, open, closed } = setUp(3);
  open('a1', 'a2', 'a3');
  const endFirst = limit.use('a1');
  const endSecond = limit.use('a1');
  open('a4');
  endFirst();
  endFirst();
  open('a5');
  expect(closed).toEqual(['a2', 'a3']);
  endSecond();
  open('a6', 'a7', 'a8');
  expect(closed).toEqual(['a2', 'a3', 'a4', 'a5', 'a1']);
});

test('if no connection is idle, the new one is closed', () => {
  const { limit, open, closed } = setUp(2);
  open('a1', 'a2');
  limit.use('a1');
  limit.use('a2');
  open('a3');
  expect(closed).toEqual(['a3']);
});

test('authenticated connections are closed last', () => {
  const { limit, open, closed } = setUp(3);
  open('a1', 'a2', 'b1');
  limit.markAuthenticated('a1');
  const end = limit.use('a2');
  limit.markAuthenticated('a2');
  end();
  open('b2', 'b3');
  expect(closed).toEqual(['b1', 'b2']);
  limit.closed('b3');
  open('b4');
  limit.use('b4');
  open('b5');
  expect(closed).toEqual(['b1', 'b2', 'a1']);
});

test('a connection is authenticated once one of its calls is, until it is closed', () => {
  const { limit, open } = setUp(2);
  open('a1', 'a2');
  limit.markAuthenticated('a1');
  limit.markAuthenticated('closed');
  expect(['a1', 'a2', 'closed'].map((name) => limit.isAuthenticated(name))).toEqual([true, false, false]);
  limit.closed('a1');
  expect(limit.isAuthenticated('a1')).toBe(false);
  limit.closed('closed');
  limit.use('closed')();
});

test('tracked sockets are destroyed, newest first, unless they are closed', () => {
  const server = new EventEmitter();
  const destroyAll = trackSockets(server as Server);
  const destroyed: string[] = [];
  const socketOf = (name: string) => Object.assign(new EventEmitter(), { destroy: () => destroyed.push(name) });
  const closed = socketOf('closed');
  server.emit('connection', socketOf('TCP'));
  server.emit('connection', closed);
  server.emit('secureConnection', socketOf('TLS'));
  closed.emit('close');
  destroyAll();
  expect(destroyed).toEqual(['TLS', 'TCP']);
});

test('closed connections free their capacity', () => {
  const { limit, open, closed } = setUp(2);
  open('a1', 'b1');
  const end = limit.use('b1');
  limit.closed('a1');
  limit.closed('b1');
  end();
  open('c1', 'd1');
  expect(closed).toEqual([]);
  open('e1');
  expect(closed).toEqual(['c1']);
});

test('repeated use of a connection takes no additional memory', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage: () => void = runInNewContext('gc');
  const limit = createConnectionLimit<object>(2_000, () => {});
  const connections = Array.from({ length: 1_000 }, () => ({}));
  for (const connection of connections) limit.opened(connection);
  const use = () => {
    for (let round = 0; round < 100; round += 1) for (const connection of connections) limit.use(connection)();
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  use();
  expect(use() - use()).toBeGreaterThan(-1_000_000);
});
