#pragma once
/*
 * Formats of strings (JSON Schema 2020-12, Validation §7.3), for who wants them asserted: what a
 * person fills into a form, say. Those of internationalised host names and addresses are not among
 * them; a format that is not known is no assertion.
 */
#include "base/str.h"

struct schema_format {
	const char *name;
	bool (*is)(struct str s); /* s: valid UTF-8 */
};

/* NULL for a format that is not known. */
const struct schema_format *schema_format(struct str name);
