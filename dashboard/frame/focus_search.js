(() => {
  // The dialog takes the focus when it opens, some time after this script has run.
  let looks = 0, held = 0;
  const timer = setInterval(() => {
    const box = document.querySelector("[data-testid=stDialog] input");
    held = box && document.activeElement === box ? held + 1 : 0;
    if (box && !held) box.focus();
    if (held > 2 || ++looks > 60) clearInterval(timer);
  }, 50);
})();
