// The navigation marks the section that is being read.

export function startNavigation() {
  const links = new Map(
    [...document.querySelectorAll("nav.sections a")].map((link) => [
      (link.getAttribute("href") ?? "").slice(1),
      link,
    ]),
  );
  const sections = [...document.querySelectorAll("main > section")];

  function mark() {
    const line = Math.min(200, innerHeight / 3);
    const passed = sections.filter((section) => section.getBoundingClientRect().top <= line);
    const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 2;
    const current = atEnd ? sections.at(-1) : (passed.at(-1) ?? sections[0]);
    for (const [id, link] of links) {
      if (id === current?.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  let waiting = false;
  const markSoon = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      mark();
    });
  };
  addEventListener("scroll", markSoon, { passive: true });
  addEventListener("resize", markSoon);
  mark();
}
