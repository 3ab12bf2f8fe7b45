/** In the environment of a process that succeeds another one: that one's number. `main.ts` reads it, and takes it away. */
export const successorVariable = "POSTRIDER_SUCCEEDS";
