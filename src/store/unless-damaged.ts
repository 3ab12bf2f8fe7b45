import { isUnavailable } from "../domain/errors.ts";

/** Damage lasts until a backup is restored, and the store has reported it: there is nothing to do, and everything else goes on. */
export async function unlessDamaged<Answer>(step: Promise<Answer>, otherwise: Answer): Promise<Answer> {
  try {
    return await step;
  } catch (error) {
    if (isUnavailable(error) && error.code === "storage_damaged") return otherwise;
    throw error;
  }
}
