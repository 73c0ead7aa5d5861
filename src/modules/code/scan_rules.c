/*
 * What prompt injection says: classes of words, and rules for them (modules/code/scan_match.h).
 * What is common in honest descriptions ("use this before X", "overrides the default", "ignore
 * case") must not be enough for a rule.
 */
#include "base/mem.h"
#include "modules/code/scan_match.h"

/* clang-format off */
const struct scan_class scan_classes[] = {
	[SCAN_NOT] = { "NOT",
	  "not dont never cannot cant mustnt shouldnt avoid no nor doesnt isnt "
	  "wont" },
	[SCAN_DESPITE] = { "DESPITE", "forget fail hesitate omit neglect" },
	[SCAN_FILE] = { "FILE", "" },
	[SCAN_PLACE] = { "PLACE", "" },
	[SCAN_LABEL] = { "LABEL", "system assistant developer admin ai" },
	[SCAN_TOOLNAME] = { "TOOLNAME", "" },
	[SCAN_ENGLISH] = { "ENGLISH",
	  "the and with this from are for which file path default never" },
	{ "KEYS", "key token" },
	{ "IGNORE",
	  "ignore disregard forget discard dismiss neglect unlearn overlook aside "
	  "ignoriere vergiss missachte ignorez oubliez ignora olvida ignorar dimentica "
	  "negeer" },
	{ "REPLACE",
	  "override overrule bypass supersede circumvent skip replace evade violate "
	  "disobey" },
	{ "PRIOR",
	  "previous prior earlier above preceding existing former past all any other "
	  "original initial foregoing system these those current todas anteriores alle "
	  "vorherigen toutes tous precedentes tutte precedenti" },
	{ "YOUR", "your" },
	{ "HARD",
	  "instruction prompt directive guideline guardrail training programming brief "
	  "direction restriction safeguard anweisungen instrucciones instrucoes "
	  "istruzioni consignes instructies" },
	{ "SOFT",
	  "rule policy constraint command message context limit limitation filter "
	  "safeguard task goal alignment" },
	{ "SAFETY", "safety security ethical content moderation" },
	{ "NEW", "new updated real actual true revised following" },
	{ "YOU", "you your yourself youre" },
	{ "NOW", "now henceforth" },
	{ "ACT", "act behave pretend roleplay impersonate operate respond pose" },
	{ "AS", "as like be" },
	{ "POWER",
	  "admin administrator root superuser developer unrestricted jailbroken dan "
	  "hacker god unfiltered uncensored evil omnipotent sysadmin operator" },
	{ "TELL", "tell mention inform reveal disclose notify alert telling told say" },
	{ "USER", "user human person anyone operator owner customer anybody people them their" },
	{ "WITHOUT", "without" },
	{ "SECRETLY", "secretly silently covertly quietly discreetly stealthily invisibly" },
	{ "ASK", "ask prompt request seek wait need require prompting requesting" },
	{ "CONSENT",
	  "confirmation permission consent approval authorization authorisation confirm "
	  "approve" },
	{ "READ",
	  "read open access retrieve get collect gather extract dump steal harvest cat "
	  "fetch load obtain copy include grab check inspect examine" },
	{ "SECRET", "credential password passphrase secret cookie keychain apikey" },
	{ "MUST",
	  "must always important required mandatory critical crucial ensure necessary "
	  "first also whenever otherwise should shall essential imperative remember "
	  "secretly please" },
	{ "BEFORE", "before prior after first preliminary" },
	{ "SEND",
	  "send post upload forward transmit exfiltrate leak email mail bcc cc submit "
	  "report relay deliver ship push publish share mirror sync" },
	{ "CHAT", "conversation chat transcript dialogue" },
	{ "TALK", "conversation chat transcript history dialogue memory" },
	{ "ALL", "entire full whole complete all everything every verbatim raw" },
	{ "PUT",
	  "put place include insert pass add append supply provide attach embed write "
	  "paste populate fill encode copy" },
	{ "PARAM",
	  "parameter argument field param sidenote value property header body url query "
	  "arg" },
	{ "TOOL", "tool function plugin server" },
	{ "CALL", "call invoke run execute consult use using calling invoking" },
	{ "OTHER", "other another every" },
	{ "INSTEAD",
	  "instead rather replaces supersedes overrides deprecates deprecated obsolete "
	  "disabled broken unsafe unavailable" },
	{ "BEHAVE", "behavior behaviour behave" },
	{ "WHEN", "when whenever while if once" },
	{ "OF", "of" },
	{ "TO", "to into" },
	{ "KEEP", "keep hide conceal remain hidden" },
	{ "KNOW", "know notice aware see learn realize realise suspect" },
	{ "ALREADY", "already previously" },
	{ "RUN", "run execute eval exec" },
	{ "SHELL", "curl wget bash sh powershell chmod nc netcat" },
	{ "DECODE", "decode decrypt decipher deobfuscate unscramble rot13 base64" },
	{ "FOLLOW", "do follow obey execute comply perform act" },
	{ "CONTENTS", "content contents data text value" },
	{ "MODEL", "ai assistant llm model agent claude gpt chatgpt copilot gemini cursor" },
	{ "FROM", "from" },
	{ "EVERY", "any all other every another both" },
	{ "FINAL", "secret hidden confidential private quiet invisible" },
	{ "RECIPIENT", "recipient recipients address destination number amount account attacker" },
	{ "CHANGE", "change modify alter redirect substitute swap rewrite set affects changes" },
	{ "RESULT", "output result response answer reply outputs results responses" },
	{ "ABOVE", "above everything previously earlier before" },
	{ "PRECEDENCE", "precedence priority" },
	{ "LONGER",
	  "longer void cancelled revoked suspended lifted waived obsolete "
	  "outdated" },
	{ "TREAT", "treat consider regard interpret" },
	{ "THIS", "this it that these" },
	{ "SHOW", "show display print output repeat return" },
	{ "LET", "let allow permit" },
	{ "AGREE", "consent agree authorize authorise" },
	{ "BAD",
	  "compromised untrusted malicious broken deprecated unsafe insecure disabled "
	  "obsolete" },
	{ "TRUST", "trusted safe authorized approved official" },
	{ "TASK", "question request query task message answer prompt" },
	{ "HOME", "home clipboard cookie desktop keychain browser" },
	{ "ENVIRON", "environment env" },
	{ "EVEN", "even regardless" },
	{ "AI", "assistant ai llm claude gpt chatgpt gemini copilot" },
	{ "NOTE", "note message notice reminder sidenote" },
	{ "SYSTEM", "system" },
	{ "I", "i" },
	{ "KNOWLEDGE", "knowledge judgment judgement" },
	{ "WARNING", "warning check" },
	{ "ITS", "its their" },
	{ "RIGHT", "authorized authorised approved consented agreed granted preapproved" },
};
const size_t scan_classes_n = ARRAY_LEN(scan_classes);

const char *const scan_rules[SCAN_KINDS] = {
	[SCAN_OVERRIDE] =
		"~IGNORE 3 PRIOR|YOUR 3 HARD;"
		"REPLACE 1 PRIOR|YOUR 2 HARD;"
		"IGNORE|REPLACE 2 YOUR 2 SOFT|SAFETY;"
		"IGNORE|REPLACE 3 SAFETY 2 SOFT|HARD;"
		"~IGNORE 1 ABOVE;"
		"~IGNORE 2 HARD 2 PRIOR|ABOVE;"
		"IGNORE 5 YOU 3 TELL;"
		"IGNORE 3 USER 1 TELL;"
		"NOT 1 FOLLOW 2 PRIOR|YOUR 3 HARD;"
		"YOUR NEW 1 HARD|SOFT;"
		"NEW HARD 6 YOU|MODEL;"
		"HARD|SOFT 2 REPLACE|INSTEAD 2 PRIOR 3 HARD;"
		"IGNORE 2 HARD 2 YOU;"
		"IGNORE 3 USER 3 HARD|SOFT;"
		"HARD 6 PRECEDENCE;"
		"PRECEDENCE 4 HARD;"
		"HARD 6 LONGER;"
		"FOLLOW 5 RESULT|TOOL 2 TELL;"
		"FOLLOW 2 HARD 4 RESULT;"
		"TREAT 6 AS 3 HARD|PRECEDENCE|SYSTEM|TRUST;"
		"NOT 1 CALL 1 YOUR 2 SAFETY;"
		"IGNORE 3 KNOWLEDGE;"
		"IGNORE|REPLACE 2 YOUR 1 SAFETY 1 WARNING;"
		"YOUR 1 PRIOR 1 HARD;"
		"RUN|FOLLOW 1 EVERY 1 SOFT|HARD 6 RESULT;",
	[SCAN_ROLE] =
		"YOU 2 NOW 6 POWER;"
		"ACT 2 AS 2 POWER;"
		"LABEL 8 YOU|IGNORE|MUST|MODEL|NEW;"
		"MUST|YOU 3 ACT 1 AS 3 MODEL;"
		"YOU|MUST 3 ACT|RESULT 2 WITHOUT 2 SOFT|SAFETY|HARD;"
		"LABEL 1 I;"
		"NOTE 3 AI 8 MUST|IGNORE|NOT|SEND|READ;"
		"AI 2 MUST 4 SEND;"
		"YOU 3 RIGHT 3 POWER;"
		"MODEL 1 MUST CALL|FOLLOW|IGNORE|KNOWLEDGE 2 TOOL;"
		"SYSTEM NOTE 10 MUST|ALL;",
	[SCAN_SECRECY] =
		"NOT 1 TELL 2 THIS;"
		"NOT 1 SHOW THIS 1 CONTENTS|NOTE|TOOL;"
		"NOT LET 2 USER;"
		"NOT 2 SHOW 4 TO 1 USER;"
		"WHEN 2 ASK 8 TELL;"
		"NOT 2 TELL 3 USER;"
		"NOT 1 TELL 4 MUST|TOOL|HARD;"
		"WITHOUT 2 TELL 2 USER;"
		"SECRETLY 3 SEND|READ|PUT|CALL|RUN|CHANGE;"
		"SEND|READ|PUT|CALL|RUN|CHANGE 3 SECRETLY;"
		"KEEP 3 FINAL 3 FROM|USER;"
		"KEEP 4 FROM 2 USER;"
		"USER 2 NOT 4 KNOW;"
		"WITHOUT 2 USER 2 KNOW;",
	[SCAN_CONSENT] =
		"NOT 2 ASK 2 USER 4 CONSENT;"
		"WITHOUT|REPLACE 3 USER 2 CONSENT;"
		"WITHOUT 1 ASK 2 USER;"
		"NOT 1 ASK 2 CONSENT;"
		"USER 2 ALREADY 2 RIGHT|CONSENT;"
		"NOT 3 CONSENT 3 ASK|RIGHT 8 MODEL|YOU;"
		"USER 3 POWER 4 RIGHT|AGREE;",
	[SCAN_SECRETS] =
		"CONTENTS 3 READ 3 FILE;"
		"~PUT|SEND 4 KEYS|SECRET 3 FROM 3 ENVIRON;"
		"ASK 3 USER 4 SECRET;"
		"~PUT|SEND 3 CONTENTS OF 4 ENVIRON|SECRET;"
		"~READ 2 EVERY|ALL 6 HOME;"
		"~PUT|READ|SEND 2 USER 3 SECRET|HOME 6 PARAM|PLACE;"
		"~MUST|BEFORE 8 READ 8 FILE;"
		"~READ|PUT|SEND 3 CONTENTS 2 OF 6 FILE;"
		"~CONTENTS OF 3 FILE 5 PARAM;"
		"~MUST 4 PUT|SEND 4 FILE;"
		"~READ 2 ALL 3 SECRET 10 PUT|SEND;"
		"~READ 6 FILE 6 TELL|SEND;"
		"~READ 6 FILE 2 PUT 1 THIS 3 TO;"
		"~PUT|SEND 6 FILE 8 PARAM|PLACE|RESULT;"
		"~MUST|BEFORE 6 READ 5 SECRET 10 PUT|SEND;"
		"~YOU|MUST 6 READ|SEND 2 ALL 3 SECRET;"
		"~READ 3 FILE 1 TO 4 PARAM;"
		"~FILE 3 PUT|SEND ITS 1 CONTENTS;"
		"~ENVIRON 4 PUT|SEND 1 THIS;",
	[SCAN_SENDING] =
		"~SEND|PUT 3 ALL|YOUR 3 TALK;"
		"~MUST 3 SEND|PUT 8 OF 2 CHAT;"
		"CHAT 2 MUST 3 SEND|PUT;"
		"CONTENTS|ALL OF 2 SYSTEM HARD;"
		"TELL 2 ITS 2 FINAL 1 HARD;"
		"~SEND|PUT 4 TALK 6 PARAM|PLACE;"
		"~SEND|PUT 2 YOUR 3 HARD;"
		"~SEND 4 SECRET 8 PLACE;"
		"~SEND 8 TO 4 PLACE 10 MUST|WITHOUT|BEFORE;"
		"~MUST 4 SEND 10 TO 4 PLACE;"
		"~MUST|ALL 6 CHANGE|PUT|SEND 5 RECIPIENT 4 TO;"
		"~TELL 2 YOUR 3 HARD;"
		"YOUR 2 SYSTEM HARD|NOTE;"
		"PARAM 4 ALL 3 TALK;"
		"SEND 3 PLACE 3 EVERY;"
		"EVERY|ALL 6 SEND 1 TO 3 PLACE;"
		"ALL|EVERY 2 CONTENTS 4 PUT|SEND 6 PARAM|PLACE;"
		"EVERY RESULT 2 PUT|SEND 6 PLACE|USER;"
		"SEND 1 ALL|EVERY 5 TO 2 PLACE;",
	[SCAN_TOOLS] =
		"MUST|BEFORE 6 CALL 1 TOOLNAME;"
		"CALL 1 TOOLNAME 3 MUST|BEFORE;"
		"BEFORE|INSTEAD 3 EVERY 2 TOOL;"
		"NOT 2 CALL 2 OTHER 2 TOOL;"
		"BEHAVE OF 4 OTHER|TOOLNAME;"
		"WHEN 4 TOOLNAME 10 MUST|CHANGE;"
		"WHEN 3 OTHER 2 TOOL 10 MUST|CHANGE;"
		"TOOL 3 INSTEAD 3 EVERY|PRIOR 3 TOOL;"
		"TOOLNAME 3 TOOL 4 NOW|MUST|INSTEAD;"
		"EVEN 3 OTHER 1 TOOL;"
		"CALL 1 TOOL 2 EVERY 1 TASK;"
		"TOOL 6 OTHER|EVERY 4 BAD;"
		"TRUST TOOL 4 OTHER|EVERY;",
	[SCAN_COMMAND] =
		"~MUST|BEFORE 6 RUN 5 SHELL;"
		"SHELL 5 PLACE 12 SHELL;"
		"PUT 2 SHELL 2 PLACE;",
	[SCAN_ENCODED] =
		"DECODE 8 FOLLOW 5 HARD;"
		"DECODE 4 PRIOR|NEW 8 FOLLOW|RUN;",
};
/* clang-format on */
