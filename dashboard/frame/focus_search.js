(() => {
  // The dialog takes the focus when it opens, at some time after this script has run. So the text gets it back until
  // somebody presses a key or the mouse, or the dialog is closed.
  const find = () => document.querySelector("[data-testid=stDialog] input");
  let seen = false, looks = 0;
  const stop = () => {
    clearInterval(timer);
    removeEventListener("keydown", pressed, true);
    removeEventListener("pointerdown", stop, true);
  };
  const pressed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Shift") return;
    // The first letter belongs to the text, wherever the focus is.
    if (event.key.length === 1) find()?.focus();
    stop();
  };
  const timer = setInterval(() => {
    const box = find();
    seen ||= Boolean(box);
    if (box && document.activeElement !== box) box.focus();
    if ((seen && !box) || ++looks > 600) stop();
  }, 50);
  addEventListener("keydown", pressed, true);
  addEventListener("pointerdown", stop, true);
})();
