#include "agents/internal.h"
#include "base/log.h"

static void agents_drive(struct agents *all, const struct config_agent *conf,
			 const struct conversation_driver *driver)
{
	struct err e;

	if (conversations_drive(all->conversations, conf->name, driver, all, &e) < 0)
		log_error("agent %.*s: %s", STR_ARG(conf->name), e.msg);
}

/* Agents that are the same are left alone: to drive anew ends what runs. */
void agents_configure(struct agents *all, struct config *c)
{
	const struct config_agents *old = &config_file(all->config)->agents;
	const struct config_agents *now = &config_file(c)->agents;
	struct config *before = all->config;
	struct err e;

	all->config = config_ref(c);
	for (size_t i = 0; i < old->n; i++) {
		if (!config_agent_find(config_file(c), old->p[i].name))
			agents_drive(all, &old->p[i], NULL);
	}
	for (size_t i = 0; i < now->n; i++) {
		if (!config_agent_find(config_file(before), now->p[i].name))
			agents_drive(all, &now->p[i], &agent_driver);
	}
	config_unref(before);
	for (size_t i = 0; i < conversations_count(all->conversations); i++) {
		struct conversation *t = conversations_at(all->conversations, i);
		struct agent *a = *conversation_driver_state(t);

		if (a && all->check(all->owner, t, &e) < 0)
			agent_fail(a, &e);
	}
}

struct agents *agents_new(const struct agents_options *o, struct err *e)
{
	struct agents *all = calloc(1, sizeof(*all));
	const struct config_agents *list = &config_file(o->config)->agents;

	if (!all)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	*all = (struct agents){ .loop = o->place->loop,
				.place = o->place,
				.config = config_ref(o->config),
				.conversations = o->conversations,
				.questions = o->questions,
				.check = o->check,
				.port = o->port,
				.owner = o->owner };
	for (size_t i = 0; i < list->n; i++)
		agents_drive(all, &list->p[i], &agent_driver);
	return all;
}

unsigned agents_live(const struct agents *all)
{
	return all ? all->live : 0;
}

/* ---- the end -------------------------------------------------------------------------------- */

static void agents_on_freed(uv_handle_t *h)
{
	struct agents *all = h->data;
	void (*on_closed)(void *arg) = all->on_closed;
	void *arg = all->closed_arg;

	config_unref(all->config);
	free(all);
	on_closed(arg);
}

void agents_try_close(struct agents *all)
{
	if (all->closing && all->live == 0 && !uv_is_closing((uv_handle_t *)&all->closed))
		uv_close((uv_handle_t *)&all->closed, agents_on_freed);
}

void agents_close(struct agents *all, void (*on_closed)(void *arg), void *arg)
{
	const struct config_agents *list;

	if (!all) {
		on_closed(arg);
		return;
	}
	all->closing = true;
	all->on_closed = on_closed;
	all->closed_arg = arg;
	uv_timer_init(all->loop, &all->closed);
	all->closed.data = all;
	list = &config_file(all->config)->agents;
	for (size_t i = 0; i < list->n; i++)
		agents_drive(all, &list->p[i], NULL);
	agents_try_close(all);
}
