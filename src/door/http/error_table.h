/*
 * The table of failures over /v1 and /sandbox.v1.Sandbox: included with API_ROW defined; no include
 * guard by intent.
 *
 * API_ROW(CODE, name, HTTP status, Connect's code, message, remediation)
 */
API_ROW(INVALID_INPUT, "invalid_input", 400, "invalid_argument", "The request is not valid.",
	"Correct what the cause names; /v1/openapi.json has the schema of each request.")
API_ROW(INVALID_JSON, "invalid_json", 400, "invalid_argument", "The body is not valid JSON.",
	"Send one JSON object in UTF-8, without repeated keys.")
API_ROW(UNAUTHORIZED, "unauthorized", 401, "unauthenticated", "The request is not authorized.",
	"Send the header \"Authorization: Bearer TOKEN\"; `holt auth token` prints the token.")
API_ROW(FORBIDDEN, "forbidden", 403, "permission_denied", "Not allowed.",
	"Ask the operator of the server to allow it, or do without.")
API_ROW(NOT_FOUND, "not_found", 404, "not_found", "Not found.",
	"Check the id or the path that the cause names; GET /v1/sandboxes lists the sandboxes and "
	"GET /v1/templates the templates.")
API_ROW(METHOD_NOT_ALLOWED, "method_not_allowed", 405, "unimplemented",
	"This path does not support the method.",
	"Use one of the methods that the Allow header names.")
API_ROW(CONFLICT, "conflict", 409, "aborted", "The request conflicts with the current state.",
	"Take another id or Idempotency-Key, or wait until what the cause names has ended.")
API_ROW(ALREADY_ANSWERED, "already_answered", 409, "failed_precondition",
	"This was already answered.",
	"The first answer counts, and the cause tells whose it was. An approval that still holds "
	"can be revoked.")
API_ROW(EXPIRED, "expired", 410, "failed_precondition", "It has expired.",
	"Nobody waits for the answer any more; have it asked again.")
API_ROW(SANDBOX_LOST, "sandbox_lost", 410, "failed_precondition", "The sandbox is lost.",
	"Its processes and files are gone; delete it, and create a new one.")
API_ROW(IDLE_TIMEOUT, "idle_timeout", 410, "failed_precondition",
	"The sandbox was idle for too long.",
	"It has ended at its idle_seconds; create a new one, with more of them or none.")
API_ROW(BODY_TOO_LARGE, "body_too_large", 413, "resource_exhausted",
	"The request or its answer is too large.",
	"Send or ask for less at once: read a range, write in parts.")
API_ROW(UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", 415, "unimplemented",
	"The media type is not supported.",
	"Send JSON with \"Content-Type: application/json\", or application/connect+json to methods "
	"that stream.")
API_ROW(TIMEOUT_TOO_LARGE, "timeout_too_large", 400, "invalid_argument",
	"The timeout is too large.", "Ask for max_timeout_s seconds or less.")
API_ROW(UPGRADE_REQUIRED, "upgrade_required", 426, "unimplemented", "This path is a WebSocket.",
	"Ask for an upgrade to a WebSocket of version 13, and offer the subprotocol that the cause "
	"names.")
API_ROW(RATE_LIMITED, "rate_limited", 429, "resource_exhausted", "Too many requests.",
	"Wait for retry_after_ms and try again.")
API_ROW(QUOTA_EXCEEDED, "quota_exceeded", 429, "resource_exhausted", "A limit was reached.",
	"End what is no longer needed, or ask for a larger limit when creating the sandbox.")
API_ROW(TOO_MANY_STREAMS, "too_many_streams", 429, "resource_exhausted",
	"Too many streams are open.", "End one of them and try again.")
API_ROW(CANCELED, "canceled", 499, "canceled", "The request was cancelled.",
	"Call again if it is still wanted.")
API_ROW(INTERNAL, "internal", 500, "internal", "The server failed.",
	"Try again; tell the operator of the server if it stays.")
API_ROW(OUTCOME_UNKNOWN, "outcome_unknown", 500, "unknown", "It may have been done.",
	"Look whether it is done before you send it again; tell the operator of the server.")
API_ROW(EXEC_FAILED, "exec_failed", 400, "failed_precondition", "The program could not be run.",
	"Check that the sandbox's template has the program, that it is executable, and that the "
	"working directory exists.")
API_ROW(FILE_FAILED, "file_failed", 400, "failed_precondition", "The file operation failed.",
	"Check the path inside the sandbox with /v1/files/stat.")
API_ROW(UNSUPPORTED, "unsupported", 501, "unimplemented", "This server can't do that.",
	"Do without; `holt doctor` on the host names what it lacks.")
API_ROW(PORT_FAILED, "port_failed", 502, "unavailable", "The server in the sandbox did not answer.",
	"Start it on the port that the cause names, at 127.0.0.1 or at all addresses, wait until "
	"it listens, and try again.")
API_ROW(MODULE_FAILED, "module_failed", 502, "unavailable", "The module refused the call.",
	"Read the cause, and change the arguments; GET /v1/modules/{name} has their schema.")
API_ROW(MODULE_NOT_STARTED, "module_not_started", 502, "unavailable",
	"The module's program or server can't be used.",
	"Read the cause, and have the operator mend what it names; GET /v1/modules/{name}/logs has "
	"what the program wrote.")
API_ROW(UNAVAILABLE, "unavailable", 503, "unavailable", "The server is busy or ending.",
	"Wait for retry_after_ms and try again.")
API_ROW(EXEC_TIMEOUT, "exec_timeout", 504, "deadline_exceeded", "The time limit was reached.",
	"Give a longer timeout, or do less in one request.")
