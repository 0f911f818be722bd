/** The style sheet of the reference, part of its pages. */
export const referenceStyle = `
:root { color-scheme: light dark; --ground: #ffffff; --ink: #171a21; --soft: #545b69; --line: #d8dce4; --panel: #f2f3f6; --accent: #1d4ed8; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #0e1014; --ink: #f2f4f8; --soft: #aab2c0; --line: #353b48; --panel: #191c23; --accent: #93b8ff; }
}
* { box-sizing: border-box; }
html { font: 100%/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; scroll-padding-top: 1rem; }
body { margin: 0; background: var(--ground); color: var(--ink); }
main { max-width: 52rem; margin: auto; padding: 2rem 1rem 4rem; overflow-wrap: anywhere; }
h1, h2, h3 { line-height: 1.25; }
section { border-top: 1px solid var(--line); margin-top: 2rem; padding-top: 0.5rem; }
section:target h2 { color: var(--accent); }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.9em; }
code { background: var(--panel); border-radius: 0.25rem; padding: 0.1em 0.3em; }
pre { background: var(--panel); border-radius: 0.5rem; padding: 1rem; overflow-x: auto; }
a { color: var(--accent); }
dt { font-weight: 600; margin-top: 0.75rem; }
dd { margin: 0.125rem 0 0; color: var(--soft); }
dd p { margin: 0.25rem 0; }
.type { color: var(--soft); font-weight: 400; font-size: 0.875rem; }
a:focus-visible, pre:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
`;
