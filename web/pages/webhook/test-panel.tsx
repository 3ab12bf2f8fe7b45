import { useState } from "preact/hooks";
import type { Webhook } from "../../api/types.ts";
import { AttemptButton } from "../../parts/attempt.tsx";
import { Area, Field } from "../../parts/field.tsx";
import { Panel } from "../../parts/panel.tsx";
import { TestAnswer, useTestEvent } from "../webhooks/test-event.tsx";
import { payloadFault, sampleOf, testBody } from "./own-test.ts";

/** Sends one event with a custom payload to this webhook only, and shows the response. */
export function TestPanel({ webhook }: { webhook: Webhook }) {
  const [payload, setPayload] = useState(() => sampleOf(webhook));
  const [eventType, setEventType] = useState("");
  const fields = { fields: ["payload", "event_type"] };
  const test = useTestEvent(webhook, () => testBody(payload, eventType.trim()), fields);
  const { attempt } = test;
  const fault = payloadFault(payload);
  return (
    <Panel title="Test event">
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (fault === null) attempt.run();
        }}
      >
        <Area
          label="Payload"
          value={payload}
          onType={setPayload}
          hint="A JSON object. It is sent exactly as written, signed, to this webhook only."
          wrong={fault ?? attempt.wrong("payload")}
        />
        <Field
          label="Event type"
          value={eventType}
          onType={setEventType}
          placeholder="order.paid"
          autocomplete="off"
          hint="Empty: the payload's own event_type or type."
          wrong={attempt.wrong("event_type")}
        />
        <div class="buttons">
          <AttemptButton of={attempt} type="submit" disabled={fault !== null}>
            Send
          </AttemptButton>
        </div>
        <TestAnswer of={test} />
      </form>
    </Panel>
  );
}
