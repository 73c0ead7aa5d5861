/* Requests of HTTP that wait for a person. The proxy keeps them; here is who they belong to. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "hub/net/internal.h"

struct question {
	struct question *next;
	uint64_t id, key;
	uint32_t seq; /* at the proxy */
};

static struct question **question_at(struct nets *all, uint64_t id)
{
	struct question **at = &all->questions;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

void nets_answer(struct nets *all, uint64_t id, bool allow, const char *why)
{
	struct question **at = question_at(all, id), *q = *at;
	struct nw_verdict m = { .h = { .type = NW_VERDICT } };

	if (!q)
		return;
	m.h.seq = ++all->last_seq;
	m.key = q->key;
	m.ask = q->seq;
	m.allow = allow;
	snprintf(m.why, sizeof(m.why), "%s", why);
	*at = q->next;
	free(q);
	if (proxy_runs(all))
		proxy_send(all, &m, sizeof(m), NULL, 0);
}

void question_hear(struct nets *all, void *of, const struct nw_ask *m)
{
	struct question *q = calloc(1, sizeof(*q));
	struct nw_ask ask = *m;

	if (!q) {
		log_error("no memory for a question of the egress proxy");
		return; /* the program gives up */
	}
	*q = (struct question){ all->questions, ++all->last_question, m->key, m->h.seq };
	all->questions = q;
	ask.host[sizeof(ask.host) - 1] = '\0';
	ask.method[sizeof(ask.method) - 1] = '\0';
	ask.target[sizeof(ask.target) - 1] = '\0';
	ask.http[sizeof(ask.http) - 1] = '\0';
	if (all->o.on_ask)
		all->o.on_ask(all->o.owner, of, q->id, &ask);
	else
		nets_answer(all, q->id, false, "nobody can be asked here");
}

static void question_end(struct nets *all, struct question **at, bool ended)
{
	struct question *q = *at;
	uint64_t id = q->id;

	*at = q->next;
	free(q);
	if (all->o.on_leave)
		all->o.on_leave(all->o.owner, id, ended);
}

void question_leave(struct nets *all, const struct nw_leave *m)
{
	struct question **at = &all->questions;

	while (*at && ((*at)->key != m->key || (*at)->seq != m->h.seq))
		at = &(*at)->next;
	if (*at)
		question_end(all, at, false);
}

void questions_drop(struct nets *all, uint64_t key)
{
	for (struct question **at = &all->questions; *at;) {
		if (!key || (*at)->key == key) {
			question_end(all, at, key != 0);
			at = &all->questions; /* callbacks may have changed it */
		} else {
			at = &(*at)->next;
		}
	}
}
