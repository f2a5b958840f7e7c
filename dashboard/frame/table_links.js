(() => {
  // The script runs whenever the table appears; once is enough, and its element is of no use then.
  document.currentScript.remove();
  if (window.tableLinks) return;
  window.tableLinks = true;
  const table = ".st-key-queue-table";
  const linkOf = (event) => event.target.closest?.(`${table} a`);
  addEventListener("click", (event) => {
    const link = linkOf(event);
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    // As if the browser went back to that address: Streamlit stays loaded, and keeps the session.
    event.preventDefault();
    link.closest(table).scrollTop = 0;
    history.pushState(null, "", link.href);
    dispatchEvent(new PopStateEvent("popstate"));
  });
  // A refresh replaces the links; the one that had the focus gets it back.
  let focused = "";
  const refreshed = new MutationObserver(() => {
    if (document.activeElement !== document.body) return;
    const links = [...document.querySelectorAll(`${table} a`)];
    links.find((it) => it.href === focused)?.focus({preventScroll: true});
  });
  addEventListener("pointerdown", () => refreshed.disconnect(), true);
  addEventListener("focusin", (event) => {
    refreshed.disconnect();
    const link = linkOf(event);
    if (!link) return;
    focused = link.href;
    refreshed.observe(link.closest(table), {childList: true, subtree: true});
  });
})();
