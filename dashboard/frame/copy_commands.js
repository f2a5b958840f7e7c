(() => {
  // The script runs whenever a finding appears; once is enough, and its element is of no use then.
  document.currentScript.remove();
  if (window.copyCommands) return;
  window.copyCommands = true;
  const copied = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Browsers have no clipboard for a page that came without TLS from another machine.
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  };
  addEventListener("click", async (event) => {
    const button = event.target.closest?.(".command button");
    if (!button) return;
    const done = await copied(button.parentElement.querySelector("code").textContent);
    button.focus({preventScroll: true});
    button.textContent = done ? "Copied" : "Select it";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
})();
