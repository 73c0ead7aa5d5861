#include "mcp/connect/program.h"

#include <stdlib.h>

#include "rpc/line.h"

struct mcp_program {
	const struct mcp_runner *by;
	void *run; /* the runner's */
	const struct mcp_child_events *ev;
	void *owner;
	struct line_reader lines;
	bool told, closing;
	void (*on_closed)(void *owner);
	void *closed_owner;
};

struct mcp_program *mcp_program_start(const struct mcp_runner *by, void *by_owner, size_t line_max,
				      const struct mcp_child_events *ev, void *owner, struct err *e)
{
	struct mcp_program *p = calloc(1, sizeof(*p));

	if (!p)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	*p = (struct mcp_program){ .by = by, .ev = ev, .owner = owner };
	line_init(&p->lines, line_max);
	p->run = by->start(by_owner, p, e);
	if (p->run)
		return p;
	line_fini(&p->lines);
	free(p);
	return NULL;
}

static bool is_heard(const struct mcp_program *p)
{
	return !p->closing && !p->told;
}

static void take_event(struct mcp_program *p, enum line_event event, struct str line)
{
	struct err e;

	if (event == LINE_TEXT && line.n > 0)
		p->ev->on_line(p->owner, line);
	if (event == LINE_TEXT || event == LINE_MORE)
		return;
	if (event == LINE_TOO_LONG)
		err_set(&e, ERR_TOO_LARGE, "a message of more than %zu bytes", p->lines.max);
	else
		err_set(&e, ERR_LIMIT, "out of memory");
	p->ev->on_long(p->owner, &p->lines.sniff, &e);
}

void mcp_program_said(struct mcp_program *p, struct str bytes)
{
	enum line_event event = LINE_TEXT;
	struct str line = STR_NONE;

	while (is_heard(p) && event != LINE_MORE) {
		event = line_next(&p->lines, &bytes, &line);
		take_event(p, event, line);
	}
}

void mcp_program_ended(struct mcp_program *p, const struct err *why)
{
	struct str line = STR_NONE;

	if (is_heard(p))
		take_event(p, line_last(&p->lines, &line), line);
	if (!is_heard(p))
		return;
	p->told = true;
	p->ev->on_end(p->owner, why);
}

void mcp_program_gone(struct mcp_program *p)
{
	if (p->on_closed)
		p->on_closed(p->closed_owner);
	line_fini(&p->lines);
	free(p);
}

void mcp_program_send(struct mcp_program *p, struct str text)
{
	if (!p->told)
		p->by->write(p->run, text);
}

void mcp_program_kill(struct mcp_program *p)
{
	p->by->kill(p->run);
}

void mcp_program_close(struct mcp_program *p, unsigned stop_ms, void (*on_closed)(void *owner),
		       void *owner)
{
	p->closing = true;
	p->on_closed = on_closed;
	p->closed_owner = owner;
	p->by->close(p->run, stop_ms);
}
