/* What an agent offers beside its words: options of its session, such as the mode and the model,
 * commands, and a title. People choose values (record.options; the agent's entry has others), which
 * its session gets when it opens, and when they choose anew. */
#include "agents/internal.h"
#include "base/log.h"
#include "json/document/put.h"
#include "json/document/utf8.h"

enum { EVENT_ROOM = 8 << 10, TITLE_MAX = 200, TITLE_MS = 1000 /* from one to the next */ };

static const struct str *options_of(const struct field_map *m, struct str id)
{
	for (size_t i = 0; i < m->n; i++) {
		if (str_eq(m->p[i].key, id))
			return &m->p[i].value;
	}
	return NULL;
}

/* One after the other: those of the conversation, then those of the entry that it does not name. */
static const struct field_pair *options_wanted(const struct agent *a, size_t i)
{
	const struct field_map *own = &conversation_record(a->conversation)->options;
	const struct field_map *general = &a->conf->options;

	if (i < own->n)
		return &own->p[i];
	i -= own->n;
	for (size_t k = 0; k < general->n; k++) {
		if (!options_of(own, general->p[k].key) && i-- == 0)
			return &general->p[k];
	}
	return NULL;
}

static void options_event(struct agent *a, struct str id, struct str value, const struct err *why)
{
	autobuf struct buf b = BUF_INIT(EVENT_ROOM);
	struct json_writer w = json_writer(&b);

	json_write_object(&w);
	json_put_str(&w, "id", id);
	json_put_str(&w, "value", value);
	json_put_text(&w, "outcome", why ? "refused" : "set");
	if (why)
		json_put_text(&w, "message", why->msg);
	if (!why &&
	    offer_is_unattended(offer_find(conversation_offer(a->conversation), id), id, value))
		json_put_bool(&w, "unattended", true);
	json_write_object_end(&w);
	agent_event(a, "option", &w, &b);
}

/* True: the agent has been asked, and agent_on_set() follows. */
static bool options_set(struct agent *a, const struct field_pair *want)
{
	static const enum acp_setting settings[OFFER_KINDS] = { ACP_SETTING_MODE, ACP_SETTING_MODEL,
								ACP_SETTING_OPTION,
								ACP_SETTING_OPTION };
	const struct offer_option *p = offer_find(conversation_offer(a->conversation), want->key);
	struct err e;

	if (!p) {
		err_set(&e, ERR_INVALID, "the agent offers no such option");
	} else if (!offer_choice(p, want->value)) {
		err_set(&e, ERR_INVALID, "the agent offers no such value");
	} else if (str_eq(p->value, want->value)) {
		return false;
	} else {
		snprintf(a->set_id, sizeof(a->set_id), "%.*s", STR_ARG(want->key));
		snprintf(a->set_value, sizeof(a->set_value), "%.*s", STR_ARG(want->value));
		if (acp_set(a->acp, settings[p->kind], p->id, want->value, p->kind == OFFER_BOOLEAN,
			    &e) == 0)
			return true;
	}
	options_event(a, want->key, want->value, &e);
	return false;
}

static void options_next(struct agent *a)
{
	const struct field_pair *want;

	while (!a->ending && (want = options_wanted(a, a->set_at))) {
		a->set_at++;
		a->setting = options_set(a, want);
		if (a->setting)
			return;
	}
	if (!a->ending)
		agent_is_open(a);
}

void agent_options_start(struct agent *a)
{
	a->set_at = 0;
	if (!a->setting)
		options_next(a);
}

void agent_on_set(void *owner, const struct json_val *result, const struct err *e)
{
	struct agent *a = owner;
	struct agent_offer *offer;

	a->setting = false;
	if (!a->conversation)
		return;
	offer = conversation_offer(a->conversation);
	offer_read_config(offer, result);
	if (!e)
		offer_set(offer, str_of(a->set_id), str_of(a->set_value));
	conversation_offered(a->conversation);
	options_event(a, str_of(a->set_id), str_of(a->set_value), e);
	options_next(a);
}

/* ---- what it reports ------------------------------------------------------------------------- */

/* A title of the agent stands where no person has given one. The record goes to the disk, so it
 * changes once a second at most. */
static void options_title(struct agent *a, struct str title)
{
	struct conversation_record r = *conversation_record(a->conversation);
	char room[sizeof(a->title)];
	struct err e;

	title = utf8_line(title, room, TITLE_MAX);
	if (a->title[0] && uv_now(a->all->loop) - a->title_ms < TITLE_MS)
		return;
	if (!title.n || (r.name.n && !str_is(r.name, a->title)) || str_eq(r.name, title))
		return;
	snprintf(a->title, sizeof(a->title), "%.*s", STR_ARG(title));
	a->title_ms = uv_now(a->all->loop);
	r.name = str_of(a->title);
	if (conversation_change(a->conversation, &r, &e) < 0)
		log_warn("conversation %s: %s", conversation_id(a->conversation), e.msg);
}

void agent_offer(struct agent *a, const struct acp_update *u)
{
	struct agent_offer *offer = conversation_offer(a->conversation);

	switch (u->kind) {
	case ACP_LOGINS:
		offer_read_logins(offer, u->all);
		break;
	case ACP_OPENED:
		offer_read_modes(offer, u->all);
		offer_read_config(offer, u->all);
		break;
	case ACP_CONFIG:
		offer_read_config(offer, u->all);
		break;
	case ACP_COMMANDS:
		offer_read_commands(offer, u->all);
		break;
	case ACP_MODE:
		offer_set(offer, STR_LIT("mode"), u->mode_id);
		return; /* agent_keep_mode() tells */
	case ACP_INFO:
		options_title(a, json_str(json_get(u->all, "title")));
		return;
	default:
		return;
	}
	conversation_offered(a->conversation);
}
