/*
 * The table of patterns. An expression finds what a secret begins with; a function decides about
 * each place (judge.c, assign.c). So expressions are short and need no start of match, which would
 * be slow, and what decides can look at what stands around.
 */
#include <assert.h>

#include "base/mem.h"
#include "guard/redact/internal.h"

#define TOKEN(kind_, regex_, width_, set_, min_, max_, needs_, prefix_)                            \
	{                                                                                          \
		.kind = (kind_), .regex = (regex_), .judge = judge_token, .width = (width_),       \
		.set = (set_), .min = (min_), .max = (max_), .needs = (needs_),                    \
		.prefix = (prefix_)                                                                \
	}
#define AFTER(kind_, regex_, set_, min_, max_, needs_)                                             \
	{                                                                                          \
		.kind = (kind_), .regex = (regex_), .judge = judge_after, .set = (set_),           \
		.min = (min_), .max = (max_), .needs = (needs_), .any_case = true                  \
	}
#define OTHER(kind_, regex_, judge_, any_case_)                                                    \
	{                                                                                          \
		.kind = (kind_), .regex = (regex_), .judge = (judge_), .any_case = (any_case_)     \
	}

#define A6 "[A-Za-z0-9]{6}"
#define U6 "[A-Za-z0-9_-]{6}"
#define H6 "[0-9a-f]{6}"

/* Lengths are of the whole token. */
/* clang-format off */
const struct pattern pattern_table[] = {
	TOKEN("github-token", "gh[pousr]_" A6, 10, WORD, 40, 255, 0, 4),
	TOKEN("github-token", "github_pat_" A6, 17, WORD, 60, 255, 0, 11),
	TOKEN("gitlab-token", "gl(?:pat|cbt|ptt|imt|oas)-" U6, 12, URL64 | IS_DOT, 26, 300, 0, 6),
	TOKEN("gitlab-token", "gl(?:dt|rt|ft|wt)-" U6, 11, URL64 | IS_DOT, 25, 300, 0, 5),
	TOKEN("gitlab-token", "gl(?:soat|ffct)-" U6, 13, URL64 | IS_DOT, 27, 300, 0, 7),
	TOKEN("gitlab-token", "glagent-" U6, 14, URL64 | IS_DOT, 28, 300, 0, 8),
	TOKEN("bitbucket-token", "ATBB" A6, 10, ALNUM, 36, 36, IS_UPPER | IS_LOWER, 4),
	TOKEN("atlassian-token", "AT[AC]TT3x" U6, 13, URL64 | IS_BASE64, 60, 255, 0, 7),
	TOKEN("aws-key-id",
	      "A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{6}", 10, IS_UPPER | IS_DIGIT, 20, 20, 0, 4),
	TOKEN("aws-key", "ABSK[A-Za-z0-9+/]{6}", 10, ALNUM | IS_BASE64, 100, 255, 0, 4),
	TOKEN("gcp-key", "AIza" U6, 10, URL64, 39, 39, 0, 4),
	TOKEN("gcp-token", "ya29\\." U6, 11, URL64 | IS_DOT, 30, 2000, 0, 5),
	TOKEN("gcp-token", "GOCSPX-" U6, 13, URL64, 31, 60, 0, 7),
	TOKEN("gcp-token", "1//0" U6, 10, URL64, 60, 300, 0, 4),
	TOKEN("azure-secret",
	      "[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{6}", 12, URL64 | IS_DOT, 37, 42, MIXED, 0),
	AFTER("azure-sas", "[?&]sig=", URL64 | IS_BASE64 | IS_ESCAPE, 24, 200, IS_DIGIT),
	TOKEN("azure-token", "[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{6}", 64, ALNUM, 80, 88, MIXED, 0),
	TOKEN("slack-token",
	      "xox[abposre]-[A-Za-z0-9-]{4}", 9, ALNUM | IS_DASH, 20, 255, IS_DIGIT, 5),
	TOKEN("slack-token",
	      "xoxe\\.xox[bp]-[A-Za-z0-9-]{4}",
	      14, ALNUM | IS_DASH | IS_DOT, 30, 255, IS_DIGIT, 10),
	TOKEN("slack-token", "xapp-[0-9]-[A-Z0-9]{4}", 11, ALNUM | IS_DASH, 40, 255, 0, 7),
	AFTER("slack-webhook",
	      "hooks\\.slack\\.com/(?:services|workflows|triggers)/",
	      URL64 | IS_BASE64, 24, 200, 0),
	AFTER("discord-webhook",
	      "discord(?:app)?\\.com/api/webhooks/", URL64 | IS_BASE64, 40, 200, 0),
	AFTER("teams-webhook",
	      "webhook\\.office\\.com/webhookb2/", URL64 | IS_BASE64 | IS_DOT, 40, 300, 0),
	TOKEN("stripe-key", "[sr]k_(?:live|test)_" A6, 14, ALNUM, 24, 255, 0, 8),
	TOKEN("stripe-key", "whsec_" A6, 12, ALNUM | IS_BASE64, 30, 120, MIXED, 6),
	TOKEN("openai-key", "sk-(?:proj|None)-" U6, 14, URL64, 40, 300, MIXED, 8),
	TOKEN("openai-key", "sk-admin-" U6, 15, URL64, 40, 300, MIXED, 9),
	TOKEN("openai-key", "sk-svcacct-" U6, 17, URL64, 40, 300, MIXED, 11),
	TOKEN("openai-key", "sk-[A-Za-z0-9]{20}", 23, ALNUM, 35, 120, IS_DIGIT | IS_LOWER, 3),
	TOKEN("anthropic-key", "sk-ant-[a-z0-9]", 8, URL64, 40, 300, MIXED, 7),
	TOKEN("openrouter-key", "sk-or-v1-" H6, 15, IS_HEX, 60, 90, 0, 9),
	TOKEN("langsmith-key", "lsv2_(?:pt|sk)_" H6, 14, IS_HEX | IS_UNDER, 40, 80, 0, 8),
	TOKEN("groq-key", "gsk_" A6, 10, ALNUM, 40, 80, MIXED, 4),
	TOKEN("xai-key", "xai-" A6, 10, ALNUM, 60, 120, MIXED, 4),
	TOKEN("perplexity-key", "pplx-" A6, 11, ALNUM, 40, 80, MIXED, 5),
	TOKEN("replicate-token", "r8_" A6, 9, ALNUM, 40, 44, MIXED, 3),
	TOKEN("huggingface-token", "hf_" A6, 9, ALNUM, 33, 60, IS_UPPER | IS_LOWER, 3),
	TOKEN("huggingface-token", "api_org_" A6, 14, ALNUM, 38, 60, IS_UPPER | IS_LOWER, 8),
	TOKEN("nvidia-key", "nvapi-" U6, 12, URL64, 60, 90, MIXED, 6),
	TOKEN("npm-token", "npm_" A6, 10, ALNUM, 40, 40, 0, 4),
	TOKEN("pypi-token", "pypi-Ag" U6, 13, URL64, 80, 300, 0, 7),
	TOKEN("rubygems-token", "rubygems_" H6, 15, IS_HEX, 57, 57, 0, 9),
	TOKEN("crates-token", "cio" A6, 9, ALNUM, 35, 35, MIXED, 3),
	TOKEN("nuget-key", "oy2[a-z0-9]{6}", 9, IS_LOWER | IS_DIGIT, 46, 46, IS_DIGIT, 3),
	TOKEN("docker-token", "dckr_[po]at_" U6, 15, URL64, 36, 60, 0, 9),
	TOKEN("artifactory-key", "AKCp[0-9]" A6, 11, ALNUM, 69, 77, MIXED, 4),
	TOKEN("sendgrid-key", "SG\\." U6, 9, URL64 | IS_DOT, 60, 80, MIXED, 3),
	TOKEN("twilio-key", "SK" H6, 8, IS_HEX, 34, 34, 0, 2),
	TOKEN("telegram-token", "[0-9]{8}:AA" U6, 17, URL64, 44, 44, 0, 11),
	TOKEN("mailgun-key", "key-" H6, 10, IS_HEX, 36, 36, 0, 4),
	TOKEN("mailchimp-key", "[0-9a-f]{32}-us[0-9]", 36, IS_DIGIT, 36, 38, 0, 0),
	TOKEN("newrelic-key", "NRAK-[A-Z0-9]{6}", 11, IS_UPPER | IS_DIGIT, 32, 32, 0, 5),
	TOKEN("grafana-token", "glsa_" A6, 11, WORD, 46, 46, 0, 5),
	TOKEN("grafana-token", "glc_[A-Za-z0-9+/]{6}", 10, ALNUM | IS_BASE64, 40, 400, MIXED, 4),
	TOKEN("sentry-token", "sntrys_eyJ" U6, 16, URL64 | IS_BASE64, 60, 400, 0, 10),
	TOKEN("sentry-token", "sntryu_" H6, 13, IS_HEX, 71, 71, 0, 7),
	TOKEN("databricks-token", "dapi" H6, 10, IS_HEX | IS_DASH, 36, 38, 0, 4),
	TOKEN("digitalocean-token", "do[opr]_v1_" H6, 13, IS_HEX, 71, 71, 0, 7),
	TOKEN("doppler-token",
	      "dp\\.(?:pt|st|ct|sa)\\." A6, 12, WORD | IS_DOT | IS_DASH, 46, 70, 0, 6),
	TOKEN("figma-token", "figd_" U6, 11, URL64, 40, 80, 0, 5),
	TOKEN("fly-token", "fo1_" U6, 10, URL64, 47, 47, MIXED, 4),
	TOKEN("fly-token", "fm[12]_[A-Za-z0-9+/]{6}", 10, ALNUM | IS_BASE64, 100, 2000, MIXED, 4),
	TOKEN("heroku-key", "HRKU-AA" U6, 13, URL64, 60, 70, 0, 7),
	TOKEN("vault-token", "hv[sbr]\\." U6, 10, URL64, 28, 255, MIXED, 4),
	TOKEN("terraform-token", "[A-Za-z0-9]{14}\\.atlasv1\\." U6, 29, URL64, 80, 100, 0, 23),
	TOKEN("linear-key", "lin_(?:api)_" A6, 14, ALNUM, 48, 48, 0, 8),
	TOKEN("notion-token", "ntn_[0-9]" A6, 11, ALNUM, 46, 52, MIXED, 4),
	TOKEN("notion-token", "secret_" A6, 13, ALNUM, 50, 50, MIXED, 7),
	TOKEN("postman-key", "PMAK-" H6, 11, IS_HEX | IS_DASH, 64, 64, 0, 5),
	TOKEN("pulumi-token", "pul-" H6, 10, IS_HEX, 44, 44, 0, 4),
	TOKEN("shopify-token", "shp(?:at|ca|pa|ss)_[0-9a-fA-F]{6}", 12, ALNUM, 38, 38, 0, 6),
	TOKEN("square-token", "sq0(?:atp|csp)-" U6, 13, URL64, 29, 60, 0, 7),
	TOKEN("supabase-key", "sbp_" H6, 10, IS_HEX, 44, 44, 0, 4),
	TOKEN("supabase-key", "sb_secret_" U6, 16, URL64, 40, 60, 0, 10),
	TOKEN("planetscale-token", "pscale_pw_" U6, 16, URL64 | IS_DOT, 40, 80, 0, 10),
	TOKEN("planetscale-token", "pscale_tkn_" U6, 17, URL64 | IS_DOT, 40, 80, 0, 11),
	TOKEN("netlify-token", "nfp_" A6, 10, ALNUM, 40, 44, MIXED, 4),
	TOKEN("airtable-token", "pat[A-Za-z0-9]{14}\\." H6, 24, IS_HEX, 82, 82, 0, 18),
	TOKEN("buildkite-token", "bkua_" H6, 11, IS_HEX, 45, 45, 0, 5),
	TOKEN("circleci-token", "CCIPAT_" A6, 13, WORD, 60, 90, 0, 7),
	TOKEN("age-key", "AGE-SECRET-KEY-1[A-Z0-9]{6}", 22, IS_UPPER | IS_DIGIT, 74, 74, 0, 16),
	TOKEN("onepassword-token", "ops_eyJ" U6, 13, URL64 | IS_BASE64, 100, 2000, 0, 7),
	TOKEN("alibaba-key", "LTAI" A6, 10, ALNUM, 20, 30, IS_UPPER | IS_LOWER, 4),
	TOKEN("tencent-key", "AKID" A6, 10, ALNUM, 36, 36, MIXED, 4),
	TOKEN("tailscale-key", "tskey-api-" A6, 16, ALNUM | IS_DASH, 36, 80, MIXED, 10),
	TOKEN("tailscale-key", "tskey-auth-" A6, 17, ALNUM | IS_DASH, 36, 80, MIXED, 11),
	TOKEN("sourcegraph-token", "sgp_" H6, 10, IS_HEX | IS_UNDER, 44, 61, 0, 4),
	TOKEN("clojars-token", "CLOJARS_[a-z0-9]{6}", 14, IS_LOWER | IS_DIGIT, 68, 68, 0, 8),
	TOKEN("contentful-token", "CFPAT-" U6, 12, URL64, 49, 49, 0, 6),
	TOKEN("slack-token", "xoxc-[0-9]{6}", 11, ALNUM | IS_DASH, 60, 255, IS_DIGIT, 5),
	TOKEN("slack-token",
	      "xoxd-[A-Za-z0-9%_-]{6}", 11, URL64 | IS_BASE64 | IS_ESCAPE, 60, 400, MIXED, 5),
	TOKEN("gitlab-token", "GR1348941" U6, 15, URL64, 29, 29, 0, 9),
	TOKEN("azure-token",
	      "[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{18}AZDO", 80, ALNUM, 84, 84, MIXED, 0),
	TOKEN("azure-key",
	      "[A-Za-z0-9_-]{44}AzFu[A-Za-z0-9_-]{4}", 52, URL64 | IS_BASE64, 54, 56, MIXED, 0),
	TOKEN("azure-key", "[A-Za-z0-9]{42}AzSe[A-Za-z0-9]{4}", 50, ALNUM, 52, 52, MIXED, 0),
	TOKEN("square-token", "EAAA" U6, 10, URL64, 64, 64, MIXED, 4),
	TOKEN("facebook-token", "EAA[A-Z][A-Za-z0-9]{6}", 10, ALNUM, 100, 400, MIXED, 4),
	TOKEN("dropbox-token", "sl\\.[A-Za-z0-9_.-]{6}", 9, URL64 | IS_DOT, 100, 2000, MIXED, 3),
	TOKEN("sonar-token", "sq[upa]_" H6, 10, IS_HEX, 44, 44, 0, 4),
	TOKEN("plaid-token", "access-sandbox-" H6, 21, IS_HEX | IS_DASH, 51, 51, 0, 15),
	TOKEN("plaid-token", "access-production-" H6, 24, IS_HEX | IS_DASH, 54, 54, 0, 18),
	TOKEN("plaid-token", "access-development-" H6, 25, IS_HEX | IS_DASH, 55, 55, 0, 19),
	TOKEN("mapbox-token", "sk\\.eyJ" U6, 12, URL64 | IS_DOT, 60, 200, MIXED, 6),
	TOKEN("brevo-key", "xkeysib-" H6, 14, ALNUM | IS_DASH, 80, 100, 0, 8),
	TOKEN("brevo-key", "xsmtpsib-" H6, 15, ALNUM | IS_DASH, 80, 100, 0, 9),
	TOKEN("resend-key", "re_[A-Za-z0-9]{8}_" A6, 18, ALNUM, 32, 40, MIXED, 3),
	TOKEN("adafruit-key", "aio_" A6, 10, ALNUM, 32, 32, MIXED, 4),
	TOKEN("typeform-token", "tfp_" U6, 10, URL64 | IS_DOT, 45, 80, MIXED, 4),
	TOKEN("cloudflare-key", "v1\\.0-[0-9a-f]{24}-" H6, 36, IS_HEX, 150, 200, 0, 5),
	TOKEN("prefect-key", "pn[ub]_" A6, 10, ALNUM, 40, 40, MIXED, 4),
	TOKEN("duffel-token", "duffel_(?:live|test)_" U6, 18, URL64, 50, 60, MIXED, 12),
	TOKEN("easypost-key", "EZ[AT]K" A6, 10, ALNUM, 58, 58, MIXED, 4),
	TOKEN("shippo-token", "shippo_(?:live|test)_" H6, 18, IS_HEX, 52, 52, 0, 12),
	TOKEN("flutterwave-key", "FLWSECK-" H6, 14, ALNUM | IS_DASH, 40, 50, 0, 8),
	TOKEN("flutterwave-key", "FLWSECK_TEST-[0-9A-Za-z]{6}", 19, ALNUM | IS_DASH, 25, 60, 0, 13),
	TOKEN("gcp-hmac",
	      "GOOG[A-Z0-9]{6}", 10, IS_UPPER | IS_DIGIT, 24, 61, IS_UPPER | IS_DIGIT, 4),
	TOKEN("artifactory-key", "cmVmdGtu" A6, 14, ALNUM, 64, 64, MIXED, 8),
	TOKEN("vercel-token", "vercel_blob_rw_" A6, 21, WORD, 40, 80, MIXED, 15),
	TOKEN("vercel-token", "vc[pik]_" A6, 10, ALNUM, 28, 64, MIXED, 4),
	TOKEN("hubspot-token", "pat-(?:na|eu|ap)[0-9]-" H6, 14, IS_HEX | IS_DASH, 44, 44, 0, 8),
	TOKEN("linear-key", "lin_oauth_" H6, 16, IS_HEX, 74, 74, 0, 10),
	TOKEN("dynatrace-token",
	      "dt0[a-z][0-9]{2}\\.[A-Z0-9]{6}", 13, IS_UPPER | IS_DIGIT | IS_DOT, 90, 100, 0, 7),
	TOKEN("bitbucket-token", "BBDC-[A-Za-z0-9+/]{6}", 11, ALNUM | IS_BASE64, 49, 49, MIXED, 5),
	TOKEN("zoho-token", "1000\\.[0-9a-f]{32}\\." H6, 44, IS_HEX, 70, 70, 0, 5),
	TOKEN("launchdarkly-key",
	      "(?:api|sdk)-[0-9a-f]{8}-[0-9a-f]{4}-", 18, IS_HEX | IS_DASH, 40, 40, 0, 4),
	TOKEN("twitch-token", "oauth:[a-z0-9]{6}", 12, IS_LOWER | IS_DIGIT, 36, 36, IS_DIGIT, 6),
	TOKEN("pinecone-key", "pcsk_" A6, 11, WORD, 60, 90, MIXED, 5),
	TOKEN("tavily-key", "tvly-" A6, 11, URL64, 30, 60, MIXED, 5),
	TOKEN("fireworks-key", "fw_" A6, 9, ALNUM, 25, 30, MIXED, 3),
	TOKEN("firecrawl-key", "fc-" H6, 9, IS_HEX, 35, 35, 0, 3),
	TOKEN("elevenlabs-key", "sk_" H6, 9, IS_HEX, 51, 51, 0, 3),
	TOKEN("langfuse-key", "sk-lf-" H6, 12, IS_HEX | IS_DASH, 42, 42, 0, 6),
	TOKEN("posthog-key", "phx_" A6, 10, ALNUM, 40, 60, MIXED, 4),
	TOKEN("neon-key", "napi_[a-z0-9]{6}", 11, IS_LOWER | IS_DIGIT, 60, 75, IS_DIGIT, 5),
	TOKEN("render-key", "rnd_" A6, 10, ALNUM, 30, 40, MIXED, 4),
	TOKEN("infracost-key", "ico-" A6, 10, ALNUM, 36, 36, MIXED, 4),
	TOKEN("circleci-token", "CCIPRJ_" A6, 13, WORD, 60, 90, 0, 7),
	TOKEN("sourcegraph-token", "sgs_" H6, 10, IS_HEX, 44, 70, 0, 4),
	TOKEN("honeycomb-key", "hcaik_[a-z0-9]{6}", 12, IS_LOWER | IS_DIGIT, 58, 70, IS_DIGIT, 6),
	TOKEN("trello-token", "ATTA[0-9a-f]{6}", 10, ALNUM, 76, 76, 0, 4),
	TOKEN("asana-token", "1/[0-9]{16}:" H6, 25, IS_HEX, 51, 51, 0, 19),
	TOKEN("clickup-token",
	      "pk_[0-9]{8}_[A-Z0-9]{6}", 18, IS_UPPER | IS_DIGIT, 44, 44, IS_UPPER | IS_DIGIT, 3),
	TOKEN("readme-key", "rdme_[a-z0-9]{6}", 11, IS_LOWER | IS_DIGIT, 75, 75, IS_DIGIT, 5),
	TOKEN("frameio-token", "fio-u-" U6, 12, URL64, 70, 70, MIXED, 6),
	TOKEN("yandex-key", "AQVN" U6, 10, URL64, 39, 39, MIXED, 4),
	TOKEN("wakatime-key", "waka_" H6, 11, IS_HEX | IS_DASH, 41, 41, 0, 5),
	TOKEN("newrelic-key", "NR(?:II|AL)-" U6, 11, URL64, 37, 37, 0, 5),
	TOKEN("newrelic-key", "NRAA-" H6, 11, IS_HEX, 32, 32, 0, 5),
	TOKEN("tailscale-key", "tskey-client-" A6, 19, ALNUM | IS_DASH, 36, 80, MIXED, 13),
	AFTER("private-key", "preshared_?key[ \\t]{0,3}=[ \\t]{0,3}",
	      ALNUM | IS_BASE64, 44, 44, MIXED),
	AFTER("aws-key", "A(?:KIA|SIA)[A-Z2-7]{16},", ALNUM | IS_BASE64, 40, 40, MIXED),
	{ .kind = "private-key", .set = ALNUM | IS_BASE64, .judge = judge_pem64,
	  .regex = "LS0tLS1CRUdJTiB[A-Za-z0-9+/]{0,20}"
		   "(?:UFJJVkFURSBLRV|BSSVZBVEUgS0VZ|QUklWQVRFIEtFW)" },
	OTHER("private-key", "Private-Lines: [0-9]{1,3}\r?\n", judge_putty, false),
	OTHER("password-hash",
	      ":(?:\\$(?:[1567y]|2[abxy]|apr1|gy|argon2id?|argon2i)\\$|\\{S?SHA(?:256|512)?\\})",
	      judge_hash, false),
	{ .kind = "jwt", .regex = "eyJ[A-Za-z0-9_-]{14,}\\.[A-Za-z0-9_-]", .judge = judge_jwt,
	  .set = URL64 | IS_DOT },
	OTHER("private-key", "PRIVATE KEY(?: BLOCK)?-----", judge_pem, false),
	OTHER("url-password", "://[^\\s:/@?#\"'<>]*:[^\\s/@\"'<>]+@", judge_url, false),
	AFTER("authorization",
	      "authorization\\\\?[\"']?[ \\t]{0,3}[:=][ \\t]{0,3}\\\\?[\"']?"
	      "(?:(?:bearer:?|basic|token"
	      "|digest|api-?key|key|negotiate|splunk|bot|ssws)[ \\t]{1,3}|"
	      "token[ \\t]token=\\\\?\"?|googlelogin auth=)",
	      URL64 | IS_DOT | IS_BASE64, 6, 4000, 0),
	AFTER("authorization", "bearer[ \\t]", URL64 | IS_DOT | IS_BASE64, 20, 4000, IS_DIGIT),
	OTHER("password", "(?:pass|pwd|secret|token|key|cred|auth|[_.-]pw)", judge_name, true),
	OTHER("password", "[ \\t]-[paPwk]", judge_option, false),
	OTHER("password",
	      ":(?:[0-9]{4,5}|\\*):[\\w.*@%+-]{1,63}:[\\w.*@%+-]{1,63}:", judge_pgpass, false),
	OTHER("password", "sshpass[ \\t]+-p[ \\t]?", judge_flag, true),
	OTHER("password", "vault login[ \\t]", judge_flag, false),
	OTHER("password", "[ \\t]-U[ \\t]?[^\\s%:\"']{1,64}%", judge_flag, false), /* smbclient */
	OTHER("password", "(?:\\.set_?password|password\\.equals)\\(", judge_flag, true),
	OTHER("password", "(?:--passphrase[ =]|psk=)", judge_flag, true),
	OTHER("password", "identified by[ \\t]", judge_identified, true),
	OTHER("password", "auth=\\([\"'][^\\s\"']{1,64}[\"'],[ ]", judge_flag, false),
	OTHER("password",
	      "(?:user|role)[ \\t][^\\s]{1,64}[ \\t](?:with )?(?:encrypted )?password[ \\t]",
	      judge_flag, true),
	OTHER("password",
	      "(?:rabbitmqctl add_user|htpasswd -[a-zA-Z]{1,6} [^\\s]{1,64}) [^\\s]{1,64} ",
	      judge_flag, false),
	OTHER("password", "(?:-u|--user)[ =][\"']?[^\\s:\"']{1,64}:", judge_user, false),
};
/* clang-format on */
static_assert(ARRAY_LEN(pattern_table) <= ROWS_MAX, "each row has its sweep");
const size_t pattern_count = ARRAY_LEN(pattern_table);

const char *redact_kind(size_t i)
{
	for (size_t k = 0; k < pattern_count; k++) {
		bool again = k > 0 && !strcmp(pattern_table[k].kind, pattern_table[k - 1].kind);

		if (!again && i-- == 0)
			return pattern_table[k].kind;
	}
	return NULL;
}
