import { auditCommand } from "./audit/audit.ts";
import { backupCommand } from "./backup/backup.ts";
import { restoreCommand } from "./backup/restore.ts";
import { verifyCommand } from "./backup/verify.ts";
import { checkUrlCommand } from "./check-url.ts";
import type { Command } from "./command.ts";
import { compactCommand } from "./compact.ts";
import { createCompletionCommand } from "./completion/completion.ts";
import { demoCommand } from "./demo/demo.ts";
import { doctorCommand } from "./doctor/doctor.ts";
import { eventsListCommand } from "./events/list.ts";
import { eventsShowCommand } from "./events/show.ts";
import { healthcheckCommand } from "./healthcheck.ts";
import { createHelpCommand } from "./help.ts";
import { licensesCommand } from "./licenses.ts";
import { listenCommand } from "./listen/listen.ts";
import { mailTestCommand } from "./mail.ts";
import { moveCommand } from "./move.ts";
import { nodesCommand } from "./nodes.ts";
import { rotateTokenCommand, tokenCommand } from "./operator.ts";
import { replayCommands } from "./replay/replay.ts";
import { restartCommand } from "./restart.ts";
import { resumeCommand } from "./resume.ts";
import { rotateKeyCommand } from "./rotate-key.ts";
import { crashCommand } from "./selftest/crash/crash.ts";
import { diskFullCommand } from "./selftest/disk-full/disk-full.ts";
import { restoreTestCommand } from "./selftest/restore/restore.ts";
import { sendCommand } from "./send/send.ts";
import { serveCommand } from "./serve.ts";
import { configCommand } from "./show-config.ts";
import { tenantCommands } from "./tenant.ts";
import { versionCommand } from "./version.ts";
import { webhookCommands } from "./webhooks/webhooks.ts";

/** In the order in which the help lists them. */
export const commands: readonly Command[] = [
  serveCommand,
  configCommand,
  demoCommand,
  listenCommand,
  sendCommand,
  eventsListCommand,
  eventsShowCommand,
  ...replayCommands,
  ...webhookCommands,
  ...tenantCommands,
  auditCommand,
  mailTestCommand,
  nodesCommand,
  tokenCommand,
  rotateTokenCommand,
  restartCommand,
  resumeCommand,
  backupCommand,
  verifyCommand,
  restoreCommand,
  compactCommand,
  rotateKeyCommand,
  moveCommand,
  healthcheckCommand,
  doctorCommand,
  checkUrlCommand,
  crashCommand,
  diskFullCommand,
  restoreTestCommand,
  licensesCommand,
  versionCommand,
  createCompletionCommand(() => commands),
  createHelpCommand(() => commands),
];
