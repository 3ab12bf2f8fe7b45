import type { NoResponseCause } from "../../src/domain/failure.ts";

/** What a test expects of an attempt. */
export type Expected = ExpectedFailure | ExpectedAnswer;

export interface ExpectedFailure {
  kind: "no-response";
  cause: NoResponseCause;
  detail?: string;
}

export interface ExpectedAnswer {
  kind: "responded";
  status: number;
  /** What is kept of the body: its text or its length. */
  kept?: string | number;
  /** Whether reading the body ends by itself, or only when the attempt's time is up. */
  bodyEnds?: "at once" | "with the time";
  /** Our side closes the connection as soon as the body has ended. */
  isCut?: boolean;
}

export const noResponse = (cause: NoResponseCause, detail?: string): ExpectedFailure => ({
  kind: "no-response",
  cause,
  ...(detail !== undefined && { detail }),
});

export const responded = (status: number, rest: Partial<ExpectedAnswer> = {}): ExpectedAnswer => ({
  kind: "responded",
  status,
  ...rest,
});
