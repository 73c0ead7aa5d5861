#pragma once
/*
 * The JSON of eslint, one array with all source text in it, which is too large to be parsed whole:
 * of its structure only files and their messages are looked at, one message at a time.
 */
#include "base/buf.h"
#include "json/document/json.h"

enum { ESLINT_PATH_MAX = 4096, ESLINT_MESSAGE_MAX = 16 << 10 };

struct eslint {
	unsigned depth;
	bool started, ended, string, escape;
	bool key_next; /* the next string of a file's object is a key */
	bool messages; /* in the array of messages */
	bool take_path; /* the string is the value of filePath */
	bool cut;
	struct buf key, path, message; /* of them path and message are JSON texts */
	void (*on_message)(void *arg, struct str path, const struct json_val *message);
	void (*on_lost)(void *arg);
	void *arg;
};

void eslint_init(struct eslint *s);
void eslint_fini(struct eslint *s);
void eslint_feed(struct eslint *s, struct str bytes);
