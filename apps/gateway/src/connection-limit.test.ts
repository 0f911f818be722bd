import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { createConnectionLimit } from './connection-limit.ts';

function setUp(connectionsMax: number) {
  const closed: string[] = [];
  const limit = createConnectionLimit<string>({ connectionsMax, close: (connection) => closed.push(connection) });
  const open = (...names: string[]) => {
    // The letter stands for the network.
    for (const name of names) limit.opened(name, `2001:db8:0:${name[0]}::${name.slice(1)}`);
  };
  return { limit, open, closed };
}

test('a full port closes the connection that is idle longest', () => {
  const { limit, open, closed } = setUp(3);
  open('a1', 'a2', 'a3');
  limit.began('a1')();
  open('a4', 'a5');
  expect(closed).toEqual(['a2', 'a3']);
  open('a6');
  expect(closed).toEqual(['a2', 'a3', 'a1']);
});

test('a connection in use is not closed, and counts as idle from the end of its last call', () => {
  const { limit, open, closed } = setUp(3);
  open('a1', 'a2', 'a3');
  const endFirst = limit.began('a1');
  const endSecond = limit.began('a1');
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
  limit.began('a1');
  limit.began('a2');
  open('a3');
  expect(closed).toEqual(['a3']);
});

test('the network with the most idle connections makes room', () => {
  const { open, closed } = setUp(5);
  open('a1', 'b1', 'b2', 'b3', 'c1');
  open('d1', 'e1');
  expect(closed).toEqual(['b1', 'b2']);
});

test('connections that once had valid credentials make room last', () => {
  const { limit, open, closed } = setUp(3);
  open('a1', 'a2', 'b1');
  limit.known('a1');
  const end = limit.began('a2');
  limit.known('a2');
  end();
  open('b2', 'b3');
  expect(closed).toEqual(['b1', 'b2']);
  limit.closed('b3');
  open('b4');
  limit.began('b4');
  open('b5');
  expect(closed).toEqual(['b1', 'b2', 'a1']);
});

test('closed connections leave room', () => {
  const { limit, open, closed } = setUp(2);
  open('a1', 'b1');
  const end = limit.began('b1');
  limit.closed('a1');
  limit.closed('b1');
  end();
  open('c1', 'd1');
  expect(closed).toEqual([]);
  open('e1');
  expect(closed).toEqual(['c1']);
});

test('IPv4 counts by address, IPv6 by /64, and IPv4 mapped to IPv6 as IPv4', () => {
  const closed: string[] = [];
  const limit = createConnectionLimit<string>({ connectionsMax: 6, close: (name) => closed.push(name) });
  const addresses = [
    '192.0.2.1',
    '::ffff:192.0.2.2',
    '2001:db8::1',
    '192.0.2.2',
    '2001:db8:0:1::1',
    '2001:db8:0:0:9::1',
  ];
  for (const address of addresses) limit.opened(address, address);
  limit.opened('new', '192.0.2.3');
  limit.opened('newer', '192.0.2.4');
  expect(closed.sort()).toEqual(['2001:db8::1', '::ffff:192.0.2.2']);
});

test('a connection that is used again and again takes no more memory', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage: () => void = runInNewContext('gc');
  const limit = createConnectionLimit<object>({ connectionsMax: 2_000, close() {} });
  const connections = Array.from({ length: 1_000 }, () => ({}));
  for (const connection of connections) limit.opened(connection, '10.0.0.1');
  const use = () => {
    for (let round = 0; round < 100; round += 1) for (const connection of connections) limit.began(connection)();
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  use();
  expect(use() - use()).toBeGreaterThan(-1_000_000);
});
