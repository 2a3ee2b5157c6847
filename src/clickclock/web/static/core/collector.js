// Where clicks are taken: on a port of its own, which the page names.
const port = /** @type {HTMLMetaElement} */ (document.querySelector('meta[name="click-port"]')).content;

/** The collectors' address as this browser would reach it without a proxy; null if the service takes no clicks. */
export const clickUrl = port ? `${location.protocol}//${location.hostname}:${port}` : null;
