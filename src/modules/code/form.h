#pragma once
/*
 * Whether a form of a stranger's server asks for a secret, which MCP forbids (2025-11-25 and
 * 2026-07-28, client/elicitation: "Servers MUST NOT use form mode elicitation to request sensitive
 * information"). Only what takes free text can. It is judged by words, so it finds who says what
 * he wants, and no one else.
 */
#include "json/document/json.h"

/* params: those of elicitation/create. The word that was found; NULL: none. Static. */
const char *form_wants_secret(const struct json_val *params);
