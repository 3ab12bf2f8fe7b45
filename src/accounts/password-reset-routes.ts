import { accepted, credentialBodyBytes, type ErasedEndpoint, endpoint, noContent } from "../http/endpoint.ts";
import { invalidRequest, refusal } from "../http/error-models.ts";
import * as m from "./model.ts";
import { mailOff, type PasswordResets, tooManyResets } from "./password-reset.ts";

const tag = "Sessions";

const tooMany = refusal("Too many password resets from this address.", tooManyResets(15 * 60));

/** Password reset for those who have lost theirs: a mail with a link, and the call that its page makes (rules, section 16). */
export function passwordResetRoutes({ resets }: { resets: PasswordResets }): ErasedEndpoint[] {
  return [
    endpoint(
      {
        method: "POST",
        path: "/v1/tenants/auth/forgot-password",
        tag,
        summary: "Request a password-reset link by mail",
        description:
          "The answer is the same whether or not the account exists. The link goes to the account's e-mail address, works once " +
          "and expires after an hour. At most one an hour is sent.",
        access: "none",
        body: m.forgotPasswordBody,
        maxBodyBytes: credentialBodyBytes,
        bodyExample: { loginId: m.loginExample.loginId },
        limit: ({ address }) => resets.check(address),
        responses: {
          202: { description: "If the account exists and its address can receive mail, the mail is on its way." },
          400: invalidRequest("loginId is required.", "field_required"),
          403: refusal("This server sends no mail.", mailOff()),
          429: tooMany,
        },
      },
      async ({ body, address }) => {
        await resets.order(body.loginId, address);
        return accepted();
      },
    ),

    endpoint(
      {
        method: "POST",
        path: "/v1/tenants/auth/reset-password",
        tag,
        summary: "Set a new password with a reset link",
        description: "`token` is the part of the link after the #. Every session of the account ends.",
        access: "none",
        body: m.resetPasswordBody,
        maxBodyBytes: credentialBodyBytes,
        bodyExample: { token: m.resetTokenExample, new_password: "Corr3ct#Horse" },
        responses: {
          204: { description: "The password is set." },
          400: invalidRequest("The link is not valid any more; ask for another one.", "reset_link_invalid"),
          429: tooMany,
        },
      },
      async ({ body, address }) => {
        await resets.use(body.token, body.new_password, address);
        return noContent();
      },
    ),
  ];
}
