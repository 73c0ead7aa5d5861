#pragma once
/* Entries by which other clients find Holt, as each of them writes such. */
#include "cli/import/foreign.h"

#define RECIPE_INPUT "holt-token" /* what VS Code asks for */

/* A program, or with url a hub over HTTP. */
struct recipe {
	const char *name;
	const char *command;
	const char *const *args; /* ends with NULL */
	struct str url; /* STR_NONE: a program */
	/* To stand in it. STR_NONE: the client gets it by itself, where it has to send one. */
	struct str token;
};

/* ERR_INVALID: the client can't have that. */
int recipe_check(const struct foreign_client *c, const struct recipe *r, struct err *e) MUST_USE;

/* Appends {"NAME":ENTRY}; of a client with TOML, its table. */
int recipe_write(const struct foreign_client *c, const struct recipe *r, struct buf *to,
		 struct err *e) MUST_USE;
/* Whether the client has to ask for the token; appends an array of what it asks. */
bool recipe_asks(const struct foreign_client *c, const struct recipe *r);
int recipe_write_inputs(struct buf *to, struct err *e) MUST_USE;
