#pragma once
/* What the files behind foreign.h share. */
#include "base/arena.h"
#include "cli/import/foreign.h"
#include "json/document/write.h"

/* Texts or pairs that grow. */
struct import_item {
	struct import_item *next;
	struct str name, value;
};
struct import_list {
	struct import_item *first, *last;
	size_t n;
};

/* A server, as the operator's file will have it. */
struct import_server {
	struct str theirs, name;
	const char *type; /* NULL: by what it has */
	struct str command, cwd, url;
	struct import_list args, env, headers, allow, deny, approvals, write, network;
	bool has_allow, disabled, sandbox;
	const char *unfit; /* why it is left out; NULL: nothing is wrong so far */
	const char *approval; /* NULL: the default */
	uint64_t timeout_seconds; /* 0: the default */
};

struct import {
	const struct foreign_options *o;
	struct arena *arena;
	const struct json_val *inputs; /* of the file; may be NULL */
	struct import_list used; /* ids of inputs that stay inputs, of this server */
	struct import_server *server;
	struct err *e;
};

void import_note(struct import *im, const char *fmt, ...) PRINTF_LIKE(2, 3);
int import_add(struct import *im, struct import_list *to, struct str name, struct str value);
bool import_has(const struct import_list *l, struct str value);

/* The first input of this id, if it is an object; NULL: there is none. */
const struct json_val *import_input(const struct import *im, struct str id);

/* A text with variables as the operator's file writes them, in the arena. what: for notes. */
int import_text(struct import *im, const char *what, struct str text, struct str *ret);
/* The same of a command, which has no variables there: those that are known have their values. */
int import_command(struct import *im, const char *what, struct str text, struct str *ret);
/* The same, without secrets. before: what stands before it in its place ("API_KEY="), by which a
 * secret is known; name: of that place, for the secret's name. */
int import_value(struct import *im, const char *what, struct str before, struct str name,
		 struct str text, struct str *ret);

/* All that an entry says. */
int import_entry(struct import *im, const struct json_val *entry);
/* Writes it as a member. */
void import_write(const struct import_server *s, struct json_writer *w);
