/** Answers of the events endpoints: the fields that are shown. */

export interface EventRow {
  readonly eventId: string;
  readonly state: string;
  readonly ingestionTimestamp: string;
  /** "" when no webhook was registered. */
  readonly targetWebhook: string;
  readonly errorReason: string | null;
  readonly errorCode: string | null;
  readonly statusCode: number | null;
  /** Null when the payload was left out or is lost. */
  readonly originalPayload: unknown;
  readonly payloadErased?: true;
  readonly attempts: number;
  readonly attemptsForgotten?: number;
  readonly nextAttemptAt: string | null;
  /** It waits for an earlier delivery with the same ordering key. */
  readonly heldBack?: true;
  /** Id of that delivery's event; absent in lists without payloads. */
  readonly heldBackBy?: string;
  /** Absent when there was none, and in lists without payloads. */
  readonly orderingKey?: string;
  /** Null: the event has no type. */
  readonly eventType: string | null;
  readonly replayGroupId: string | null;
}

export interface EventPage {
  readonly events: readonly EventRow[];
  readonly total: number;
  /** Only with filters. */
  readonly totalIsExact?: boolean;
  /** Only with `q`: when the newest event that was not searched was accepted; null when all were searched. */
  readonly searchedTo?: string | null;
}

export interface AttemptRow {
  readonly targetWebhook: string;
  readonly number: number;
  readonly startedAt: string;
  readonly durationMs: number;
  readonly statusCode: number | null;
  readonly error: string | null;
  readonly errorCode: string | null;
  readonly responseBody: string;
  /** Absent when it was acknowledged or got no response. */
  readonly responseHeaders?: readonly { readonly name: string; readonly value: string }[];
  readonly replayGroupId: string | null;
}
