#pragma once
/* What was found of one thing that was looked at: a line for people, an object for programs. */
#include <stdbool.h>

#include "json/field/field.h"

struct finding {
	struct str feature;
	bool ok, required;
	struct str detail, remedy;
};
extern const struct field_table finding_table;

/* Signs that the terminal can show. */
struct marks {
	const char *yes, *no, *optional;
};
struct marks marks_pick(void);

void finding_print(const struct finding *f, const struct marks *m, bool with_remedy);
