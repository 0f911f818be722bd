import { EventEmitter } from 'node:events';
import type { Http2Session } from 'node:http2';
import type { Server } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { penaltyLimits } from '../../limits.ts';
import { createPenalties } from './penalties.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

const { perSecond, connectionsPerSecond, waitingMax, restrictedMs, restrictedNetworksMax } = penaltyLimits;
const intervalMs = 1_000 / connectionsPerSecond;

/** Creates penalties on a server without sockets, and records which connections reach the server. */
function setUp() {
  const server = new EventEmitter();
  const accepted: string[] = [];
  server.on('connection', ({ name }: { readonly name: string }) => accepted.push(name));
  const penalize = createPenalties(server as Server, penaltyLimits, (address) => address === '192.0.2.99');
  const connect = (name: string, remoteAddress = '192.0.2.1') => {
    const socket = Object.assign(new EventEmitter(), { name, remoteAddress, resume: vi.fn(), destroy: vi.fn() });
    server.emit('connection', socket);
    return socket;
  };
  const sessionOf = (remoteAddress: string | undefined) => {
    const session = { destroyed: false, socket: { remoteAddress }, destroy: vi.fn() };
    return { session, penalize: () => penalize(session as unknown as Http2Session) };
  };
  /** Makes a network exceed its allowance. */
  const exceed = (remoteAddress = '192.0.2.1') => {
    const { penalize: penalizeSession } = sessionOf(remoteAddress);
    for (let penalty = 0; penalty <= perSecond; penalty += 1) penalizeSession();
  };
  return { accepted, connect, sessionOf, exceed };
}

test('connections are accepted immediately while their network keeps to its allowance', () => {
  const { accepted, connect } = setUp();
  const socket = connect('first');
  expect(accepted).toEqual(['first']);
  expect(socket.resume).toHaveBeenCalledOnce();
});

test('the session that exceeds the allowance is closed, and the next connections of its network are accepted slowly', () => {
  const { accepted, connect, sessionOf } = setUp();
  const { session, penalize } = sessionOf('192.0.2.1');
  for (let penalty = 0; penalty < perSecond; penalty += 1) penalize();
  expect(session.destroy).not.toHaveBeenCalled();
  penalize();
  expect(session.destroy).toHaveBeenCalledOnce();
  const sockets = ['a', 'b', 'c'].map((name) => connect(name));
  connect('other network', '198.51.100.1');
  expect(accepted).toEqual(['other network']);
  sockets[1]?.emit('close');
  vi.advanceTimersByTime(intervalMs);
  expect(accepted).toEqual(['other network', 'a']);
  expect(sockets[0]?.resume).toHaveBeenCalledOnce();
  expect(sockets[0]?.listenerCount('close')).toBe(0);
  vi.advanceTimersByTime(intervalMs);
  expect(accepted).toEqual(['other network', 'a', 'c']);
});

test('a connection that would exceed the maximum number of waiting ones is closed', () => {
  const { accepted, connect, exceed } = setUp();
  exceed();
  const sockets = Array.from({ length: waitingMax + 1 }, (_, index) => connect(String(index)));
  expect(sockets.filter(({ destroy }) => destroy.mock.calls.length > 0)).toEqual(sockets.slice(-1));
  vi.advanceTimersByTime(waitingMax * intervalMs);
  expect(accepted).toEqual(sockets.slice(0, -1).map(({ name }) => name));
});

test('the restriction ends once the network has kept to its allowance for a while and no connection waits', () => {
  const { accepted, connect, exceed } = setUp();
  exceed();
  vi.advanceTimersByTime(restrictedMs / 2);
  exceed();
  vi.advanceTimersByTime(restrictedMs - intervalMs);
  connect('waits');
  expect(accepted).toEqual([]);
  vi.advanceTimersByTime(intervalMs);
  expect(accepted).toEqual(['waits']);
  vi.advanceTimersByTime(intervalMs);
  connect('does not wait');
  expect(accepted).toEqual(['waits', 'does not wait']);
  expect(vi.getTimerCount()).toBe(0);
});

test('only a limited number of networks is restricted at the same time', () => {
  const { accepted, connect, exceed } = setUp();
  for (let network = 0; network < restrictedNetworksMax; network += 1) exceed(`10.0.${network}.1`);
  exceed();
  connect('unrestricted');
  connect('restricted', '10.0.0.1');
  expect(accepted).toEqual(['unrestricted']);
});

test('trusted proxies, closed sessions and sessions without an address get no penalty', () => {
  const { sessionOf } = setUp();
  const exempt = [sessionOf('192.0.2.99'), sessionOf(undefined), sessionOf('192.0.2.7')];
  Object.assign(exempt[2]?.session ?? {}, { destroyed: true });
  for (const { session, penalize } of exempt) {
    for (let penalty = 0; penalty <= perSecond; penalty += 1) penalize();
    expect(session.destroy).not.toHaveBeenCalled();
  }
});
