#include "cli/import/recipe.h"

#include "json/document/write.h"

enum { TEXT_MAX = 64 << 10 };

int recipe_check(const struct foreign_client *c, const struct recipe *r, struct err *e)
{
	if (!r->url.p)
		return 0;
	if (!c->url)
		return err_set(e, ERR_INVALID,
			       "%s only starts programs: use --connect instead of --url", c->name);
	if (!c->token && !r->token.p)
		return err_set(e, ERR_INVALID,
			       "%s has no variables in its file: use --connect, or --with-token, "
			       "which puts the token into the file",
			       c->name);
	return 0;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void recipe_write_program(const struct foreign_client *c, const struct recipe *r,
				 struct json_writer *w)
{
	json_write_name(w, "command");
	if (c->vector)
		json_write_array(w);
	json_write_text(w, r->command);
	if (!c->vector) {
		json_write_name(w, "args");
		json_write_array(w);
	}
	for (size_t i = 0; r->args[i]; i++)
		json_write_text(w, r->args[i]);
	json_write_array_end(w);
	if (!r->token.p)
		return;
	json_write_key(w, c->vector ? "environment" : "env");
	json_write_object(w);
	json_write_name(w, "HOLT_TOKEN");
	json_write_str(w, r->token);
	json_write_object_end(w);
}

static int recipe_bearer(const struct foreign_client *c, const struct recipe *r, struct buf *to,
			 struct err *e)
{
	struct str token = r->token.p ? r->token : str_of(c->token);

	return buf_reserve(to, sizeof("Bearer ") + token.n, e)
		     ? buf_addf(to, e, "Bearer %.*s", STR_ARG(token))
		     : -1;
}

static void recipe_write_url(const struct foreign_client *c, const struct recipe *r,
			     struct json_writer *w, struct str bearer)
{
	json_write_key(w, c->url);
	json_write_str(w, r->url);
	json_write_name(w, "headers");
	json_write_object(w);
	json_write_name(w, "Authorization");
	json_write_str(w, bearer);
	json_write_object_end(w);
}

static int recipe_write_json(const struct foreign_client *c, const struct recipe *r, struct buf *to,
			     struct err *e)
{
	autowipe struct buf bearer = BUF_INIT(TEXT_MAX);
	const char *type = r->url.p ? c->http : c->stdio;
	struct json_writer w = json_writer(to);

	if (r->url.p && recipe_bearer(c, r, &bearer, e) < 0)
		return -1;
	json_write_object(&w);
	json_write_key(&w, r->name);
	json_write_object(&w);
	if (type) {
		json_write_name(&w, "type");
		json_write_text(&w, type);
	}
	if (r->url.p)
		recipe_write_url(c, r, &w, buf_str(&bearer));
	else
		recipe_write_program(c, r, &w);
	json_write_object_end(&w);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

bool recipe_asks(const struct foreign_client *c, const struct recipe *r)
{
	return r->url.p && !r->token.p && c->token && strstr(c->token, "input:");
}

int recipe_write_inputs(struct buf *to, struct err *e)
{
	static const char inputs[] =
		"[{\"type\":\"promptString\",\"id\":\"" RECIPE_INPUT "\","
		"\"description\":\"Token of the hub: holt auth token\",\"password\":true}]";

	return buf_add(to, inputs, sizeof(inputs) - 1, e);
}

/* ---- TOML: its strings are written as those of JSON ------------------------------------------ */

static int recipe_add_str(struct buf *to, const char *before, struct str s, const char *behind,
			  struct err *e)
{
	struct json_writer w = json_writer(to);

	if (buf_addf(to, e, "%s", before) < 0)
		return -1;
	json_write_str(&w, s);
	return json_write_done(&w, e) < 0 ? -1 : buf_addf(to, e, "%s", behind);
}

static int recipe_add_args(const struct recipe *r, struct buf *to, struct err *e)
{
	if (buf_addf(to, e, "args = [") < 0)
		return -1;
	for (size_t i = 0; r->args[i]; i++) {
		if (recipe_add_str(to, i ? ", " : "", str_of(r->args[i]), "", e) < 0)
			return -1;
	}
	return buf_addf(to, e, "]\n");
}

static int recipe_write_toml(const struct foreign_client *c, const struct recipe *r, struct buf *to,
			     struct err *e)
{
	autowipe struct buf bearer = BUF_INIT(TEXT_MAX);

	if (buf_addf(to, e, "[%s.%s]\n", c->root, r->name) < 0)
		return -1;
	if (!r->url.p)
		return recipe_add_str(to, "command = ", str_of(r->command), "\n", e) < 0 ||
				       recipe_add_args(r, to, e) < 0 ||
				       (r->token.p && recipe_add_str(to, "env = { HOLT_TOKEN = ",
								     r->token, " }\n", e) < 0)
			     ? -1
			     : 0;
	if (recipe_add_str(to, "url = ", r->url, "\n", e) < 0)
		return -1;
	if (!r->token.p)
		return recipe_add_str(to, "bearer_token_env_var = ", str_of(c->token), "\n", e);
	return recipe_bearer(c, r, &bearer, e) < 0
		     ? -1
		     : recipe_add_str(to, "http_headers = { Authorization = ", buf_str(&bearer),
				      " }\n", e);
}

int recipe_write(const struct foreign_client *c, const struct recipe *r, struct buf *to,
		 struct err *e)
{
	return c->toml ? recipe_write_toml(c, r, to, e) : recipe_write_json(c, r, to, e);
}
