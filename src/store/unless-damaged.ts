import { DomainError } from "../domain/errors.ts";

export const damagedCode = "storage_damaged";

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
