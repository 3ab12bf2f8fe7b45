/** Environment variable that gives a successor the process id of its predecessor. `main.ts` reads and removes it. */
export const successorVariable = "POSTRIDER_SUCCEEDS";
