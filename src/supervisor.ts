import { sendDatagram } from "./lib/socket-calls.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** What systemd understands (sd_notify(3)). */
export type Notice = "READY=1" | "STOPPING=1" | `MAINPID=${number}`;

/**
 * Tells the supervisor that started this process, if it wants to know (`Type=notify`). It never fails: nobody may be listening.
 */
export function tellSupervisor(notices: readonly Notice[], env: Environment): void {
  const { NOTIFY_SOCKET: socket } = env;
  if (socket !== undefined && /^[/@]/.test(socket)) sendDatagram(socket, notices.join("\n"));
}

/**
 * Why a successor would not outlive this process; null: it would. A container ends with its first process, and systemd
 * ends a service with its main process unless it is told of another one.
 */
export function endsWithThisProcess(env: Environment, pid: number): string | null {
  if (pid === 1) return "this is the first process of a container, which ends with it. Try: start a new container";
  if (env.SYSTEMD_EXEC_PID === String(pid) && env.NOTIFY_SOCKET === undefined) {
    return "systemd would take its end for that of the service. Try: set Type=notify and NotifyAccess=all in the unit";
  }
  return null;
}
