#pragma once
/*
 * Variables in texts of the operator's file: ${NAME} and ${env:NAME} of the environment, either
 * with a default as in ${NAME:-text}; ${input:ID}, for which somebody is asked; ${secret:NAME}.
 * "$${" is "${" itself. No other text is special.
 *
 * A text is read once: what replaces a variable is never looked at again, and a default has no
 * variables. The file keeps its texts as they are written, so no value of a secret or of the
 * environment is in it, in a digest of it, or in what `holt config show` prints.
 */
#include "base/buf.h"

enum {
	CONFIG_VALUE_MAX = 8192, /* characters of an argument, a variable, a header */
	CONFIG_VARIABLE_MAX = 64, /* characters of a variable's name */
};

enum config_part_kind {
	CONFIG_PART_TEXT,
	CONFIG_PART_ENV,
	CONFIG_PART_INPUT,
	CONFIG_PART_SECRET,
};

struct config_part {
	enum config_part_kind kind;
	struct str text; /* as it is; or the name of the variable */
	struct str otherwise; /* the default; STR_NONE: it has none */
};

/* Takes the part at the front of *rest. 1; 0: there is none; -1 with ERR_INVALID. */
int config_part_next(struct str *rest, struct config_part *ret, struct err *e) MUST_USE;

/* Where values come from. */
struct config_values {
	void *data;
	/* Appends the value: 1; 0: there is none; -1 with *e. */
	int (*value)(void *data, enum config_part_kind kind, struct str name, struct buf *to,
		     struct err *e);
};

/* A config_values.value: of this program's environment, which may not be the hub's. Others are
 * empty. */
int config_value_here(void *data, enum config_part_kind kind, struct str name, struct buf *to,
		      struct err *e);

/* Appends the text with values in place of its variables. ERR_INVALID, which names the variable:
 * there is no value and no default, or the value has a NUL. For secrets `to` has room already
 * (buf_wipe()). */
int config_expand(struct str text, const struct config_values *v, struct buf *to,
		  struct err *e) MUST_USE;
