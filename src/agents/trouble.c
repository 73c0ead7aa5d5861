/* What hinders an agent, and what it says of it: hosts that it can't reach, messages that were
 * dropped, and its standard error. */
#include <strings.h>

#include "agents/internal.h"
#include "json/document/put.h"
#include "json/document/utf8.h"
#include "modules/code/clean.h"
#include "net/wire/wire.h"

enum { LINE_ROOM = 160 };

void agent_on_stderr(void *owner, struct str bytes)
{
	struct agent *a = owner;
	size_t drop;

	if (bytes.n > sizeof(a->last)) {
		bytes.p += bytes.n - sizeof(a->last);
		bytes.n = sizeof(a->last);
	}
	drop = a->last_n + bytes.n > sizeof(a->last) ? a->last_n + bytes.n - sizeof(a->last) : 0;
	memmove(a->last, a->last + drop, a->last_n - drop);
	memcpy(a->last + a->last_n - drop, bytes.p, bytes.n);
	a->last_n += bytes.n - drop;
}

static bool trouble_begins(struct str line, const char *word)
{
	size_t n = strlen(word);

	return line.n >= n && strncasecmp(line.p, word, n) == 0;
}

/* Runtimes print the cause first, then a stack and their version. */
static bool trouble_is_place(struct str line)
{
	return trouble_begins(line, "at ");
}

static bool trouble_tells(struct str line)
{
	static const char *const words[] = { "error", "cannot",	 "can't",  "could not", "denied",
					     "fail",  "refused", "unable", "not found", "no such" };
	char text[LINE_ROOM];
	size_t n = line.n < sizeof(text) - 1 ? line.n : sizeof(text) - 1;

	if (trouble_begins(line, "warn") || trouble_begins(line, "npm warn"))
		return false;
	memcpy(text, line.p, n);
	text[n] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strcasestr(text, words[i]))
			return true;
	}
	return false;
}

/* The last line that tells of a failure, else the last. */
static struct str trouble_line(struct str said)
{
	struct str best = STR_NONE, last = STR_NONE;

	while (said.n > 0) {
		const char *end = memchr(said.p, '\n', said.n);
		size_t n = end ? (size_t)(end - said.p) : said.n;
		struct str line = str_trim((struct str){ said.p, n });

		if (line.n && !trouble_is_place(line)) {
			last = line;
			if (trouble_tells(line))
				best = line;
		}
		n += end != NULL;
		said = (struct str){ said.p + n, said.n - n };
	}
	return best.n ? best : last;
}

static void trouble_event(struct agent *a, const char *type, const char *name, struct str text)
{
	autobuf struct buf b = BUF_INIT(8 * AGENT_LAST_MAX);
	struct json_writer w = json_writer(&b);

	json_write_object(&w);
	json_put_str(&w, name, text);
	json_write_object_end(&w);
	agent_event(a, type, &w, &b);
}

void agent_last_words(struct agent *a, struct err *e)
{
	autobuf struct buf plain = BUF_INIT(8 * AGENT_LAST_MAX);
	struct str said = { a->last, a->last_n }, line;
	char room[LINE_ROOM];
	struct err none;

	while (said.n > 0 && (unsigned char)said.p[said.n - 1] <= ' ')
		said.n--;
	line = clean_text(&plain, said, CLEAN_TEXT, AGENT_LAST_MAX, &none) < 0
		     ? trouble_line(said)
		     : trouble_line(buf_str(&plain));
	line = utf8_line(line, room, sizeof(room));
	if (!line.n)
		return;
	trouble_event(a, "agent_stderr", "text", said);
	err_wrap(e, "\"%.*s\"", STR_ARG(line));
}

static bool trouble_is_new(struct agent *a, const char *host)
{
	for (unsigned i = 0; i < a->hosts_n; i++) {
		if (strcmp(a->hosts[i], host) == 0)
			return false;
	}
	if (a->hosts_n == AGENT_HOSTS_MAX || !(a->hosts[a->hosts_n] = strdup(host)))
		return false;
	a->hosts_n++;
	return true;
}

void agent_on_refused(void *owner, const struct nw_flow *f)
{
	struct agent *a = owner;
	char port[8] = "";
	struct err e;

	if (!a->conversation || !a->turn || !trouble_is_new(a, f->host))
		return;
	if (f->port)
		snprintf(port, sizeof(port), ":%u", f->port);
	err_set(&e, f->what == NW_FLOW_DENIED ? ERR_DENIED : ERR_TRANSPORT, "%s%s: %s", f->host,
		port, nw_reason_text(f->reason));
	conversation_hindered(a->conversation, "network", &e);
}

void agent_on_dropped(struct agent *a, const struct err *why)
{
	if (a->conversation && !a->ending)
		trouble_event(a, "dropped", "message", str_of(why->msg));
}
