// The page of a Longshort server: views as tabs, and the dialog for a token.

import { askBy, askForToken, hasToken } from "./api.js";
import { makeClassify } from "./classify.js";
import { byId, hintScrolling, say } from "./dom.js";
import { makeEmbed } from "./embed.js";
import { makeGenerate } from "./generate.js";
import { keyOf, makeModels, Models } from "./models.js";
import { makeScore } from "./score.js";
import { makeServer } from "./server.js";

const NAMES = ["models", "score", "generate", "classify", "embed", "server"];
const REFRESH_MODELS_MS = 5000;

const tabs = NAMES.map((name) => byId(`tab-${name}`));
const models = new Models();
const modelView = makeModels(models, open);
makeScore(models);
makeGenerate(models);
makeClassify(models);
makeEmbed(models);
const serverView = makeServer();

// `remember`: the browser's button "Back" returns to the view before.
function show(name, { focus = false, remember = false } = {}) {
  const shown = NAMES.includes(name) ? name : NAMES[0];
  NAMES.forEach((one, index) => {
    byId(`panel-${one}`).hidden = one !== shown;
    tabs[index].setAttribute("aria-selected", one === shown);
    tabs[index].tabIndex = one === shown ? 0 : -1;
    if (one === shown && focus) tabs[index].focus();
  });
  document.title = `${tabs[NAMES.indexOf(shown)].textContent} · Longshort`;
  if (location.hash !== `#${shown}`) history[remember ? "pushState" : "replaceState"](null, "", `#${shown}`);
  serverView.watch(shown === "server");
}

function open(name, model) {
  const select = byId(`${name}-model`);
  select.value = keyOf(model);
  select.dispatchEvent(new Event("change"));
  show(name, { focus: true, remember: true });
}

tabs.forEach((tab, index) => {
  tab.addEventListener("click", () => show(NAMES[index], { remember: true }));
  tab.addEventListener("keydown", (event) => {
    const last = NAMES.length - 1;
    const next = { ArrowRight: index === last ? 0 : index + 1, ArrowLeft: index === 0 ? last : index - 1, Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    show(NAMES[next], { focus: true });
  });
});
window.addEventListener("hashchange", () => {
  if (location.hash !== "#main") show(location.hash.slice(1));
});
// A file that misses its target must not replace the page.
for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => event.preventDefault());

hintScrolling(byId("server-table"), byId("server-table-note"));

const dialog = byId("token-dialog");

// Resolves to what the person enters, or null.
function askInDialog(reason) {
  return new Promise((resolve) => {
    const field = byId("token");
    say(byId("token-reason"), reason, true);
    byId("token-reason").hidden = reason === "";
    field.value = "";
    dialog.showModal();
    dialog.returnValue = "";
    byId("token-form").onsubmit = (event) => {
      event.preventDefault();
      dialog.close("given");
    };
    byId("token-cancel").onclick = () => dialog.close("");
    dialog.onclose = () => {
      const token = dialog.returnValue === "given" ? field.value.trim() : null;
      field.value = "";
      resolve(token || null);
      byId("token-button").hidden = false;
    };
  });
}

askBy(askInDialog);
byId("token-button").hidden = !hasToken();
byId("token-button").addEventListener("click", async () => {
  if (!(await askForToken())) return;
  modelView.refresh();
  serverView.askAgain();
});

show(location.hash.slice(1));
await modelView.refresh();
setInterval(() => {
  // All views wait for the list of a server that has just started.
  const wanted = models.list.length === 0 || !byId("panel-models").hidden;
  if (wanted && !document.hidden && !dialog.open) modelView.refresh({ quiet: true });
}, REFRESH_MODELS_MS);
