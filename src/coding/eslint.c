#include "coding/eslint.h"

/* Depths: 1 the array, 2 a file, 3 its messages, 4 one of them. */
enum { FILES = 1, A_FILE, MESSAGES, A_MESSAGE };

void eslint_init(struct eslint *s)
{
	*s = (struct eslint){
		.key = BUF_INIT(64),
		.path = BUF_INIT(ESLINT_PATH_MAX),
		.message = BUF_INIT(ESLINT_MESSAGE_MAX),
	};
}

void eslint_fini(struct eslint *s)
{
	buf_fini(&s->key);
	buf_fini(&s->path);
	buf_fini(&s->message);
}

static void eslint_keep(struct buf *b, char c)
{
	struct err e;

	if (buf_add(b, &c, 1, &e) < 0)
		b->max = b->n; /* takes no more, and so it is no JSON */
}

static void eslint_open(struct eslint *s)
{
	s->depth++;
	if (s->depth == A_FILE) {
		s->key_next = true;
		s->path.n = 0;
		s->path.max = ESLINT_PATH_MAX;
	} else if (s->depth == MESSAGES) {
		s->messages = str_is(buf_str(&s->key), "messages");
	} else if (s->depth == A_MESSAGE && s->messages) {
		s->message.n = 0;
		s->message.max = ESLINT_MESSAGE_MAX;
	}
}

static void eslint_close(struct eslint *s)
{
	if (s->depth == A_MESSAGE && s->messages) {
		AUTO(json_free) struct json_doc *path = NULL, *message = NULL;
		struct err e;

		path = json_parse(buf_str(&s->path), NULL, &e);
		message = json_parse(buf_str(&s->message), NULL, &e);
		if (message)
			s->on_message(s->arg, json_str(json_root(path)), json_root(message));
		else
			s->on_lost(s->arg);
	}
	if (s->depth == MESSAGES)
		s->messages = false;
	if (s->depth > 0 && --s->depth == 0)
		s->ended = true;
}

static void eslint_string_begin(struct eslint *s)
{
	s->string = true;
	if (s->depth != A_FILE)
		return;
	s->take_path = !s->key_next && str_is(buf_str(&s->key), "filePath");
	if (s->key_next) {
		s->key.n = 0;
		s->key.max = 64;
	}
}

static void eslint_string(struct eslint *s, char c)
{
	bool ends = !s->escape && c == '"';

	s->escape = !s->escape && c == '\\';
	if (s->take_path)
		eslint_keep(&s->path, c);
	else if (s->depth == A_FILE && s->key_next && !ends)
		eslint_keep(&s->key, c);
	if (!ends)
		return;
	s->string = false;
	s->take_path = false;
}

static void eslint_byte(struct eslint *s, char c)
{
	if (s->string) {
		eslint_string(s, c);
		return;
	}
	switch (c) {
	case '"':
		eslint_string_begin(s);
		if (s->take_path)
			eslint_keep(&s->path, c);
		break;
	case ':':
		s->key_next = false;
		break;
	case ',':
		s->key_next = s->depth == A_FILE;
		break;
	}
}

void eslint_feed(struct eslint *s, struct str bytes)
{
	for (size_t i = 0; i < bytes.n && !s->ended; i++) {
		char c = bytes.p[i];
		bool opens = !s->string && (c == '{' || c == '[');
		bool closes = !s->string && (c == '}' || c == ']');

		if (opens)
			eslint_open(s);
		if (s->messages && s->depth >= A_MESSAGE)
			eslint_keep(&s->message, c);
		if (closes)
			eslint_close(s);
		if (!opens && !closes)
			eslint_byte(s, c);
	}
}
