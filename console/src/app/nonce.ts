// The nonce of this page: only style elements that carry it are applied. The Master puts a fresh one into each page.
export const nonce = document.querySelector<HTMLMetaElement>("meta[property=csp-nonce]")?.nonce ?? "";

// The library that locks scrolling under a dialog adds a style element too, and looks for the nonce here.
(globalThis as { __webpack_nonce__?: string }).__webpack_nonce__ = nonce;
