// The three pages of an installation: its settings, who may do what, and who did what.
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { may } from "../core/permissions.js";

const TABS = [["/settings", "Settings", "setting.read"], ["/settings/tokens", "Tokens", "token.read"], ["/settings/audit", "Audit trail", "audit.read"]];

export const settingTabs = (here) => html`<nav class="tabs" aria-label="Installation">${TABS.filter(([path, , needs]) => path === here || may(needs)).map(([path, word]) => html`<a class="button" href=${path} aria-current=${path === here ? "page" : nothing}>${word}</a>`)}</nav>`;
