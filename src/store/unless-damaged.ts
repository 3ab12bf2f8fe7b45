import { DomainError, unavailable } from "../domain/errors.ts";

const damagedCode = "storage_damaged";
/** It will not be repaired soon: the operator has to restore a backup. */
const damageRetrySeconds = 300;

/** @param cause what the database said */
export const storageDamaged = (cause?: unknown): DomainError =>
  unavailable(
    "This data is damaged in storage and cannot be read; ask the operator of this server to restore it from a backup.",
    damagedCode,
    damageRetrySeconds,
    cause,
  );

/** Whether a verb was refused because of damage, and has written nothing. */
export const isStorageDamaged = (error: unknown): boolean => error instanceof DomainError && error.code === damagedCode;

/** Damage lasts until a backup is restored, and the store has reported it: there is nothing to do, and everything else goes on. */
export async function unlessDamaged<Answer>(step: Promise<Answer>, otherwise: Answer): Promise<Answer> {
  try {
    return await step;
  } catch (error) {
    if (isStorageDamaged(error)) return otherwise;
    throw error;
  }
}
