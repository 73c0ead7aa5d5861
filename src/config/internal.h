#pragma once
/* Shared by the files behind config/config.h. */
#include "config/config.h"
#include "json/document/raw.h"

/* While a file is read. */
struct config_reader {
	struct config *config;
	struct json_pointer *where;
	struct err *e;
};

/* Checks that the tables can't express: -1 with the place in *where. at: the section. */
int config_check_policy(struct config_reader *r, struct json_pointer at,
			struct config_policy *p) MUST_USE;
int config_check_secrets(struct config_reader *r, struct json_pointer at,
			 const struct config_secrets *s) MUST_USE;

int config_check_network(struct config_reader *r, struct json_pointer at,
			 const struct config_network *n) MUST_USE;
int config_check_tls(struct config_reader *r, struct json_pointer at,
		     const struct config_tls *t) MUST_USE;
int config_check_inputs(struct config_reader *r, struct json_pointer at,
			const struct config_inputs *in) MUST_USE;
int config_check_conversations(struct config_reader *r, struct json_pointer root,
			       const struct config_file *f) MUST_USE;
int config_check_profiles(struct config_reader *r, struct json_pointer at,
			  const struct config_file *f) MUST_USE;
int config_check_servers(struct config_reader *r, struct json_pointer at,
			 struct config_file *f) MUST_USE;

int config_check_agents(struct config_reader *r, struct json_pointer at,
			struct config_file *f) MUST_USE;

/* Like config_server_texts(); *where is the place that failed. */
int config_texts(const struct config_server *s, config_text_fn each, void *data,
		 struct json_pointer *where, struct err *e) MUST_USE;

/* Puts the file, the line and the pointer before the message; -1. */
int config_wrap_at(const struct config *c, const struct json_pointer *at, struct err *e);

/* The place of a member. */
static inline struct json_pointer config_at(struct json_pointer of, struct str name)
{
	json_pointer_key(&of, name);
	return of;
}

/* The line of a value. */
unsigned config_line(const struct config_reader *r, const struct json_pointer *at);

/* The lines of the elements of an array, or of the members of an object, one after the other. */
struct config_lines {
	struct json_raw raw; /* private */
	const char *at;
	unsigned line;
};
struct config_lines config_lines(const struct config_reader *r, const struct json_pointer *of);
unsigned config_next_line(struct config_lines *l);

/* -1 with ERR_INVALID, about the value there. */
int config_refuse(struct config_reader *r, const struct json_pointer *at, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

/* Appends a file, which must be a regular one that nobody but its owner, this user or root, may
 * write. name: for messages. */
int config_load(int fd, const char *name, struct buf *to, struct err *e) MUST_USE;

/* Whether it can be the name of a server, an agent or a preset. */
bool config_is_name(struct str name);

/* Overwrites comments with spaces. */
int config_strip(char *text, size_t n, size_t *ret_at, struct err *e) MUST_USE;
