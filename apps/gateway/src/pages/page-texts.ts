/** The languages of the payment page, as BCP 47 tags; the first is spoken to whoever asks for none of them. */
export const pageLanguages = ['en', 'es', 'fr', 'de', 'pt', 'hi', 'ar', 'ja'] as const;

export type PageLanguage = (typeof pageLanguages)[number];

/** All words of the page. They are labels and whole sentences, so that no grammar is needed to put them together. */
export interface PageTexts {
  readonly direction: 'ltr' | 'rtl';
  readonly payTo: string;
  readonly amount: string;
  readonly note: string;
  readonly orderNumber: string;
  readonly created: string;
  readonly status: string;
  readonly unpaid: string;
  readonly pay: string;
  readonly back: string;
  readonly backTo: string;
  /** Said where there is no Pay button. */
  readonly merchantContinues: string;
  readonly unknownTitle: string;
  readonly unknownText: string;
  readonly troubleTitle: string;
  readonly troubleText: string;
}

export const pageTexts: Readonly<Record<PageLanguage, PageTexts>> = {
  en: {
    direction: 'ltr',
    payTo: 'Payment to',
    amount: 'Amount to pay',
    note: 'For',
    orderNumber: 'Order number',
    created: 'Created',
    status: 'Status',
    unpaid: 'Not paid yet',
    pay: 'Pay',
    back: 'Return to the merchant',
    backTo: 'You will return to',
    merchantContinues: 'The merchant will take it from here: return to their site to complete the payment.',
    unknownTitle: 'This payment link is not known',
    unknownText: 'Check that the address is complete, or ask the merchant for a new link.',
    troubleTitle: 'This page can’t be shown right now',
    troubleText: 'Nothing is lost. Please try again in a moment.',
  },
  es: {
    direction: 'ltr',
    payTo: 'Pago a',
    amount: 'Importe a pagar',
    note: 'Concepto',
    orderNumber: 'Número de pedido',
    created: 'Creado el',
    status: 'Estado',
    unpaid: 'Pendiente de pago',
    pay: 'Pagar',
    back: 'Volver al comercio',
    backTo: 'Volverá a',
    merchantContinues: 'El comercio se encarga del siguiente paso: vuelva a su sitio para completar el pago.',
    unknownTitle: 'No conocemos este enlace de pago',
    unknownText: 'Compruebe que la dirección esté completa o pida un nuevo enlace al comercio.',
    troubleTitle: 'No podemos mostrar esta página en este momento',
    troubleText: 'No se ha perdido nada. Inténtelo de nuevo en unos instantes.',
  },
  fr: {
    direction: 'ltr',
    payTo: 'Paiement à',
    amount: 'Montant à payer',
    note: 'Objet',
    orderNumber: 'Numéro de commande',
    created: 'Créée le',
    status: 'Statut',
    unpaid: 'Pas encore payée',
    pay: 'Payer',
    back: 'Retourner chez le commerçant',
    backTo: 'Vous retournerez sur',
    merchantContinues: 'Le commerçant prend la suite : retournez sur son site pour terminer le paiement.',
    unknownTitle: 'Ce lien de paiement est inconnu',
    unknownText: 'Vérifiez que l’adresse est complète ou demandez un nouveau lien au commerçant.',
    troubleTitle: 'Cette page ne peut pas être affichée pour le moment',
    troubleText: 'Rien n’est perdu. Veuillez réessayer dans un instant.',
  },
  de: {
    direction: 'ltr',
    payTo: 'Zahlung an',
    amount: 'Zu zahlender Betrag',
    note: 'Betreff',
    orderNumber: 'Bestellnummer',
    created: 'Erstellt am',
    status: 'Status',
    unpaid: 'Noch nicht bezahlt',
    pay: 'Bezahlen',
    back: 'Zurück zum Händler',
    backTo: 'Sie kehren zurück zu',
    merchantContinues:
      'Ab hier übernimmt der Händler: Kehren Sie auf seine Website zurück, um die Zahlung abzuschließen.',
    unknownTitle: 'Dieser Zahlungslink ist nicht bekannt',
    unknownText: 'Prüfen Sie, ob die Adresse vollständig ist, oder bitten Sie den Händler um einen neuen Link.',
    troubleTitle: 'Diese Seite kann gerade nicht angezeigt werden',
    troubleText: 'Es ist nichts verloren gegangen. Bitte versuchen Sie es gleich noch einmal.',
  },
  pt: {
    direction: 'ltr',
    payTo: 'Pagamento a',
    amount: 'Valor a pagar',
    note: 'Descrição',
    orderNumber: 'Número do pedido',
    created: 'Criado em',
    status: 'Situação',
    unpaid: 'Ainda não pago',
    pay: 'Pagar',
    back: 'Voltar à loja',
    backTo: 'Você voltará para',
    merchantContinues: 'A loja cuida do próximo passo: volte ao site dela para concluir o pagamento.',
    unknownTitle: 'Este link de pagamento não é conhecido',
    unknownText: 'Confira se o endereço está completo ou peça um novo link à loja.',
    troubleTitle: 'Não é possível mostrar esta página agora',
    troubleText: 'Nada foi perdido. Tente novamente em instantes.',
  },
  hi: {
    direction: 'ltr',
    payTo: 'भुगतान प्राप्तकर्ता',
    amount: 'भुगतान की राशि',
    note: 'विवरण',
    orderNumber: 'ऑर्डर संख्या',
    created: 'बनाने का समय',
    status: 'स्थिति',
    unpaid: 'अभी भुगतान नहीं हुआ है',
    pay: 'भुगतान करें',
    back: 'विक्रेता की साइट पर लौटें',
    backTo: 'आप यहाँ लौटेंगे',
    merchantContinues: 'आगे की प्रक्रिया विक्रेता पूरी करेगा: भुगतान पूरा करने के लिए उनकी साइट पर लौटें।',
    unknownTitle: 'यह भुगतान लिंक पहचाना नहीं गया',
    unknownText: 'जाँचें कि पता पूरा है, या विक्रेता से नया लिंक माँगें।',
    troubleTitle: 'यह पेज अभी नहीं दिखाया जा सकता',
    troubleText: 'कुछ भी खोया नहीं है। कृपया थोड़ी देर में फिर कोशिश करें।',
  },
  ar: {
    direction: 'rtl',
    payTo: 'الدفع إلى',
    amount: 'المبلغ المطلوب دفعه',
    note: 'الوصف',
    orderNumber: 'رقم الطلب',
    created: 'تاريخ الإنشاء',
    status: 'الحالة',
    unpaid: 'لم يُدفع بعد',
    pay: 'ادفع',
    back: 'العودة إلى المتجر',
    backTo: 'ستعود إلى',
    merchantContinues: 'سيتولى المتجر الخطوة التالية: عُد إلى موقعه لإتمام الدفع.',
    unknownTitle: 'رابط الدفع هذا غير معروف',
    unknownText: 'تأكد من اكتمال العنوان، أو اطلب رابطًا جديدًا من المتجر.',
    troubleTitle: 'لا يمكن عرض هذه الصفحة الآن',
    troubleText: 'لم يُفقد أي شيء. يُرجى المحاولة مرة أخرى بعد قليل.',
  },
  ja: {
    direction: 'ltr',
    payTo: 'お支払い先',
    amount: 'お支払い金額',
    note: '内容',
    orderNumber: '注文番号',
    created: '作成日時',
    status: '状態',
    unpaid: '未払い',
    pay: '支払う',
    back: 'ショップに戻る',
    backTo: '戻り先',
    merchantContinues: 'この先はショップがご案内します。お支払いを完了するには、ショップのサイトにお戻りください。',
    unknownTitle: 'このお支払いリンクは確認できません',
    unknownText: 'アドレスが正しいかご確認いただくか、ショップに新しいリンクをご依頼ください。',
    troubleTitle: '現在このページを表示できません',
    troubleText: '情報は失われていません。しばらくしてからもう一度お試しください。',
  },
};
