import { boundLike, closeOnExec, openSocket, type SocketCalls, socketCalls } from "../lib/socket-calls.ts";
import { findListeners, isListening } from "./listening-sockets.ts";

/** Keeps this process's listeners from accepting connections. Clients that connect meanwhile wait in the system's queue. */
export interface ListenerPause {
  /** For a part of the program that has a reason of its own to pause: nothing is accepted while any part wants that. */
  reason(): PauseReason;
  /** Closes a listener cleanly: the runtime must find it under its descriptor. */
  whileClosing<T>(close: () => T): T;
  /** To be called when a listener has started on this port, in any thread. */
  learn(port: number): void;
}

export interface PauseReason {
  begin(): void;
  end(): void;
}

/** Descriptors. */
interface Place {
  readonly listener: number;
  readonly port: number;
  /** A socket with the listener's address that does not listen. */
  readonly standIn: number;
  /** Holds the listener's socket during a pause. */
  readonly holder: number;
}

/**
 * The runtime offers nothing for this. So during a pause, a listener's descriptor refers to another socket with the same
 * address, which cannot accept anything (accept(2), `EINVAL`), while another descriptor holds the listener. dup3(2) replaces
 * a descriptor in one step, and epoll(7) watches the socket, so everything is as before once the listener is back in place.
 */
export function createListenerPause(): ListenerPause {
  const calls = socketCalls();
  return calls === null ? noPause : createSystemPause(calls);
}

function createSystemPause(calls: SocketCalls): ListenerPause {
  const ports = new Set<number>();
  /** Everything needed is opened beforehand: in a flood there may be no descriptor left. */
  let places: Place[] = [];
  let paused: readonly Place[] = [];
  const standing = new Set<PauseReason>();

  function findPlaces() {
    for (const { standIn, holder } of places) {
      calls.close(standIn);
      calls.close(holder);
    }
    places = [...ports].flatMap((port) =>
      [...findListeners(calls, port)].flatMap((listener) => placeOf(listener, port)),
    );
  }

  /** If the system refuses, there is no pause. */
  function placeOf(listener: number, port: number): Place[] {
    const standIn = boundLike(calls, listener);
    if (standIn === null) return [];
    const holder = openSocket(calls);
    if (holder >= 0) return [{ listener, port, standIn, holder }];
    calls.close(standIn);
    return [];
  }

  function pause() {
    if (paused.length > 0) return;
    // A listener closed unnoticed has left its number to some other descriptor.
    paused = places.filter(({ listener, port }) => isListening(calls, listener, port));
    for (const { listener, standIn, holder } of paused) {
      calls.dup3(listener, holder, closeOnExec);
      calls.dup3(standIn, listener, closeOnExec);
    }
  }

  function goOn() {
    for (const { listener, standIn, holder } of paused) {
      calls.dup3(holder, listener, closeOnExec);
      calls.dup3(standIn, holder, closeOnExec);
    }
    if (paused.length > 0) paused = [];
  }

  /** Runs what needs the listeners in their places, and changes them. */
  function whileInPlace<T>(change: () => T): T {
    goOn();
    const result = change();
    findPlaces();
    if (standing.size > 0) pause();
    return result;
  }

  return {
    reason() {
      const reason: PauseReason = {
        begin() {
          standing.add(reason);
          pause();
        },
        end() {
          standing.delete(reason);
          if (standing.size === 0) goOn();
        },
      };
      return reason;
    },
    whileClosing: whileInPlace,
    learn: (port) => whileInPlace(() => void ports.add(port)),
  };
}

const noReason: PauseReason = { begin() {}, end() {} };
const noPause: ListenerPause = { reason: () => noReason, whileClosing: (close) => close(), learn() {} };
