#pragma once
/*
 * Formats of strings (JSON Schema 2020-12, Validation §7.3), for callers that want them asserted,
 * for example for a form that a person fills in. Formats of internationalised host names and
 * addresses are not supported; an unknown format asserts nothing.
 */
#include "base/str.h"

struct schema_format {
	const char *name;
	bool (*is)(struct str s); /* s: valid UTF-8 */
};

/* NULL for a format that is not known. */
const struct schema_format *schema_format(struct str name);
