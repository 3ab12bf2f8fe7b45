import { Cron } from "croner";
import { itemLike, listOf, optional, orWord, setting, textThat, wholeNumber } from "./setting-forms.ts";

const recipient = /^age1(?:[a-z]+1)?[02-9ac-hj-np-z]{50,}$/;

/** Where scheduled backups and those of `postrider backup` go, and who can read them. */
export const backupSettings = {
  backupUrl: setting({
    env: "POSTRIDER_BACKUP_URL",
    default: "",
    doc: "Folder, or `s3://bucket/prefix` (with the `AWS_…` variables), to which backups go; for `postrider backup` and `backup verify` the default.",
    example: "s3://backups/postrider",
    isUrl: true,
    ...optional(
      // With one slash or an invalid bucket name, it would be a folder with a strange name.
      textThat(
        "a folder, or s3://bucket/prefix with a bucket name of 3 to 63 characters (a-z, 0-9, ., -)",
        (text) => !/^\w+:/.test(text) || isBucketUrl(text),
      ),
    ),
  }),
  backupRecipients: setting({
    env: "POSTRIDER_BACKUP_AGE_RECIPIENT",
    default: "",
    doc: "Public keys of age (`age1…`), comma-separated: backups are encrypted to them. Restoring one takes the identity file of any.",
    example: "age1c6wxef0xuq0tw4jpds9ggt98ylgdkrnszlqdk5a8lassx6fm5evq80e408",
    // Backups encrypted to the example's key would be lost.
    remedy: "the public key that age-keygen prints, age1…; the line AGE-SECRET-KEY-… stays away from the server",
    mistakenSecret: /AGE-SECRET-KEY-/i,
    ...listOf("public keys of age (age1…)", itemLike(recipient)),
  }),
  backupCron: setting({
    env: "POSTRIDER_BACKUP_CRON",
    default: "",
    doc: "When the server makes a backup, as a cron expression in the machine's time zone; each is verified. Needs POSTRIDER_BACKUP_URL; by hand only when empty.",
    example: "0 3 * * *",
    ...optional(
      textThat("a cron expression (minute, hour, day, month, day of the week) with a time to come", hasNextRun),
    ),
  }),
  backupKeep: setting({
    env: "POSTRIDER_BACKUP_KEEP",
    default: "7",
    doc: "How many of the server's backups are kept; the newest verified one is always kept. `none`: no limit.",
    example: "30",
    ...orWord("none", wholeNumber(1, 10_000)),
  }),
};

function hasNextRun(cron: string): boolean {
  try {
    return new Cron(cron, { paused: true }).nextRun() !== null;
  } catch {
    return false;
  }
}

/** `s3://BUCKET[/PREFIX]`, with the names that S3 allows: 3 to 63 characters in lower case. */
export const isBucketUrl = (text: string): boolean => /^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:\/.*)?$/.test(text);

/** How to reach an S3-compatible store. The variables are the usual ones for S3 programs. */
export interface S3Access {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | null;
  readonly region: string;
  /** Null: Amazon's own. */
  readonly endpoint: string | null;
}

/** Null without a key. */
export function readS3Access(env: Readonly<Record<string, string | undefined>>): S3Access | null {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  if (!accessKeyId || !secretAccessKey) return null;
  return {
    accessKeyId,
    secretAccessKey,
    sessionToken: env.AWS_SESSION_TOKEN || null,
    region: env.AWS_REGION || env.AWS_DEFAULT_REGION || "us-east-1",
    endpoint: env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL || null,
  };
}
